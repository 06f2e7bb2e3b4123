"""``python -m evenhand``, and the command ``evenhand``."""


def main() -> None:
    """The command line, or in one sentence what it needs."""
    try:
        from evenhand.cli import app
    except ModuleNotFoundError as error:
        raise SystemExit(f"the command line needs {error.name}: pip install 'evenhand[cli,report,io]'") from None
    app(prog_name="evenhand")


if __name__ == "__main__":
    main()
