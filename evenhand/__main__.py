"""``python -m evenhand``."""

try:
    from evenhand.cli import app
except ModuleNotFoundError as error:
    raise SystemExit(f"the command line needs {error.name}: pip install 'evenhand[cli,report,io]'") from None

if __name__ == "__main__":
    app(prog_name="evenhand")
