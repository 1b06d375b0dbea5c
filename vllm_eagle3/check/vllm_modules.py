# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The slow imports of a check in one place, so that their time can be told apart."""

import vllm.distributed  # noqa: F401
import vllm.engine.arg_utils  # noqa: F401
import vllm.model_executor.model_loader  # noqa: F401
import vllm.model_executor.models.deepseek_eagle3  # noqa: F401
import vllm.model_executor.models.llama_eagle3  # noqa: F401
import vllm.model_executor.models.qwen3_eagle3  # noqa: F401
import vllm.transformers_utils.configs.eagle  # noqa: F401
