# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
#
# The native operators. pip builds those that this machine can use; these targets build
# again after a change, and check what no CPU can run.

.PHONY: native
native: ## Build the native operators of this checkout again
	@$(SETUP)
	VLLM_TARGET_DEVICE=$(BACKEND) $(VENV)/bin/python setup.py build_ext --inplace

.PHONY: cuda-check
cuda-check: ## Compile the CUDA operators and look at their memory accesses (needs nvcc, no GPU)
	@$(SETUP)
	$(VENV)/bin/python tools/cuda_check.py

.PHONY: gpu-check
gpu-check: ## Build, test and time the operators on the GPU at hand (five minutes)
	@$(SETUP) --with test
	$(VENV)/bin/python tools/gpu_check.py $(if $(filter cpu,$(BACKEND)),--device cpu)
