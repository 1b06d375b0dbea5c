# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What the tools for CUDA make of what compilers and GPUs say; neither is needed."""

import subprocess
import sys
from pathlib import Path

import pytest

from tools import cuda_check, gpu_check

WIDE_PTX = """
.visible .entry _ZN1a15argmax_segmentsItEEvPKT_(
	ld.global.v4.u32 	{%r1, %r2, %r3, %r4}, [%rd1];
}
.visible .entry _ZN1a15argmax_segmentsIjEEvPKT_(
	ld.global.nc.L1::no_allocate.v4.b32 	{%r1, %r2, %r3, %r4}, [%rd1];
}
.visible .entry _ZN1a10widen_rowsItEEvPKT_(
	ld.global.nc.v4.u32 	{%r1, %r2, %r3, %r4}, [%rd1];
	st.global.v4.b32 	[%rd1], {%r1, %r2, %r3, %r4};
}
.visible .entry _ZN1a10widen_rowsIjEEvPKT_(
	ld.global.nc.v4.u32 	{%r1, %r2, %r3, %r4}, [%rd1];
	st.global.v4.u32 	[%rd1], {%r1, %r2, %r3, %r4};
}
"""
WIDE_SASS = """
.text._ZN1a15argmax_segmentsItEEvPKT_:
        /*0090*/                   LDG.E.128 R4, desc[UR4][R2.64] ;
.text._ZN1a15argmax_segmentsIjEEvPKT_:
        /*0090*/                   LDG.E.128 R4, desc[UR4][R2.64] ;
.text._ZN1a10widen_rowsItEEvPKT_:
        /*0090*/                   LDG.E.128.CONSTANT R4, desc[UR4][R2.64] ;
        /*0190*/                   STG.E.128 desc[UR4][R2.64], R4 ;
.text._ZN1a10widen_rowsIjEEvPKT_:
        /*0090*/                   LDG.E.128.CONSTANT R4, desc[UR4][R2.64] ;
        /*0190*/                   STG.E.128 desc[UR4][R2.64], R4 ;
"""
LANGUAGES = {
    "ptx": (WIDE_PTX, cuda_check.PTX, cuda_check.PTX_KERNEL),
    "sass": (WIDE_SASS, cuda_check.SASS, cuda_check.SASS_KERNEL),
}
NARROWER = {
    "ptx": [
        ("ld.global.v4.u32", "ld.global.u16"),
        ("st.global.v4.b32", "st.global.b16"),
    ],
    "sass": [("LDG.E.128 ", "LDG.E.U16 "), ("STG.E.128", "STG.E.64")],
}


def faults(language: str, code: str) -> list[str]:
    _, accesses, start = LANGUAGES[language]
    return list(cuda_check.faults_in(code, accesses, start, "the listing"))


@pytest.mark.parametrize("language", LANGUAGES)
def test_wide_accesses_are_seen(language):
    assert faults(language, LANGUAGES[language][0]) == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_one_narrow_access_is_a_fault(language):
    code = LANGUAGES[language][0]
    for (wide, narrow), kernel in zip(
        NARROWER[language], ("argmax", "widen"), strict=True
    ):
        (fault,) = faults(language, code.replace(wide, narrow, 1))
        assert kernel in fault and "of 16 bytes" in fault


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_kernel_that_is_not_there_is_a_fault(language):
    code = LANGUAGES[language][0].replace("10widen_rowsIj", "10other_rowsIj")
    assert faults(language, code) == [
        "the listing has 1 kernels called widen_rows, not 2"
    ]
    assert len(faults(language, "")) == 2


@pytest.mark.parametrize(
    "name, complaint",
    [
        (
            "c10::cuda::getStreamFromPool(bool)",
            "no part of torch",
        ),
        ("at::Tensor::item() const", "no part of torch"),
        ("cudaStreamSynchronize@libcudart.so.13", "CUDA graphs refuse"),
        ("cudaMemcpyAsync@libcudart.so.13", "CUDA graphs refuse"),
        ("cudaMalloc", "CUDA graphs refuse"),
    ],
)
def test_symbols_that_may_not_be_needed(name, complaint):
    (fault,) = cuda_check.faults_of_symbols([name])
    assert complaint in fault


def test_symbols_that_may_be_needed():
    names = ["aoti_torch_get_current_cuda_stream", "cudaLaunchKernel@libcudart.so.13"]
    assert list(cuda_check.faults_of_symbols(names)) == []


@pytest.mark.parametrize("arguments, code", [([], 2), (["--if-present"], 0)])
def test_without_nvcc_it_says_so(monkeypatch, capsys, tmp_path, arguments, code):
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert cuda_check.main(arguments) == code
    said = capsys.readouterr()
    assert said.err.startswith("cuda-check: nvcc was not found") and not said.out


def test_without_a_gpu_it_says_so(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpu_check.main([]) == 2
    said = capsys.readouterr()
    assert said.err.startswith("gpu-check: no NVIDIA GPU was found") and not said.out


def row(kind: str, **more: object) -> dict[str, object]:
    sizes = {"sizes": "32000/128256/4096", "dtype": "bfloat16", "batch": 256}
    return {"kind": kind, "step": "ours, native"} | sizes | more


def test_goals_are_taken_from_rows_of_native_operators():
    rows = [
        row("token from logits", speedup={"median": 2.9}),
        row("token from logits", speedup={"median": 9.0}, step="ours, PyTorch"),
        row("wide from logits", of_base={"median": 1.1}),
        row("token from logits", speedup={"median": 9.0}, sizes="8/8/4"),
    ]
    greedy, wide = gpu_check.goals_of(rows, "cuda")
    assert not greedy.is_reached and "2.90 (at least 3: MISSED)" in str(greedy)
    assert wide.is_reached and "1.10 (at most 1.2: reached)" in str(wide)


@pytest.mark.parametrize(
    "command, problem",
    [
        ("pass", ""),
        ("raise SystemExit(3)", "returned non-zero exit status 3"),
        ("import time; time.sleep(60)", "was not done when"),
    ],
)
def test_a_stage_that_fails_says_so_and_no_more(command, problem):
    end = gpu_check.time.monotonic() + 1.0
    stage = gpu_check.Stage("stage", (sys.executable, "-c", command), {})
    outcome = gpu_check.run(stage, end)
    assert problem in outcome.problem and bool(problem) == bool(outcome.problem)


def test_a_program_that_is_not_there_is_a_problem_of_its_stage():
    stage = gpu_check.Stage("stage", (str(Path("no", "program")),), {})
    assert "No such file" in gpu_check.run(stage, end=1e12).problem


def test_the_architecture_is_asked_of_the_gpu(monkeypatch):
    def says(command, **options):
        return subprocess.CompletedProcess(command, 0, stdout="9.0\n9.0\n")

    monkeypatch.setattr(gpu_check.subprocess, "run", says)
    monkeypatch.delenv("TORCH_CUDA_ARCH_LIST", raising=False)
    build, *_ = gpu_check.stages("cuda", short=False)
    assert build.environment == {
        "VLLM_TARGET_DEVICE": "cuda",
        "TORCH_CUDA_ARCH_LIST": "9.0",
    }
