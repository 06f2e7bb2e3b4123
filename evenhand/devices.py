"""Where numbers lie: which devices are here, and which of them have float64."""

from __future__ import annotations

import torch

__all__ = ["check_device", "device_of_float64"]

Device = str | torch.device


def check_device(device: Device, dtype: torch.dtype = torch.float32) -> None:
    """Not every device is here, and not every one has numbers of every precision."""
    try:
        torch.empty(0, dtype=dtype, device=torch.device(device))  # None is none
    except (RuntimeError, AssertionError, NotImplementedError, TypeError) as error:
        reason = str(error).splitlines()[0][:200]
        said = str(device) if isinstance(device, torch.device) else device
        wide = ", in float64" if dtype == torch.float64 else ""
        raise ValueError(f"device={said!r} cannot be used here{wide} ({reason}); 'cpu' always can") from error


def device_of_float64(device: Device) -> str:
    """Where to compute in float64 what lies on a device: there, or on the CPU if it has none."""
    return str(torch.device(device)) if torch.device(device).type == "cuda" else "cpu"
