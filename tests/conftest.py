"""Before torch is imported: some virtual machines announce AMX without allowing it, and bfloat16 then ends Python."""

import os

os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")
