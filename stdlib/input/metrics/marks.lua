-- SPDX-License-Identifier: Apache-2.0
-- marks.lua: lines of a training log that say why the step after them takes longer: a checkpoint was written, the model was evaluated, a
-- process began. Words of NVIDIA/Megatron-LM (training.py, checkpointing.py: "saving checkpoint at iteration", "successfully saved
-- checkpoint", "validation loss at iteration", "before the start of training step") and of pytorch/torchtitan (checkpoint.py: "Saving the
-- checkpoint", "Finished saving the checkpoint"; metrics.py: "validate step:"; train.py: "Training starts at step"), of NVIDIA/NeMo
-- (progress_printer.py: "Validation: iteration"), AI-Hypercomputer/maxtext (metric_logger.py: "eval metrics after step") and
-- huggingface/transformers (trainer.py: "***** Running Evaluation *****", "Saving model checkpoint to"; evaluate logs what it measured as
-- {'eval_loss': …, 'eval_runtime': …}, which LLaMA-Factory's trainer_log.jsonl and ms-swift have too).

local marks = {}

-- "checkpoint", "evaluation", "start", or nil.
function marks.of(line)
  if line:find "[Cc]heckpoint" and line:find "[Ss]av[ei]" then return "checkpoint" end
  if line:find("validat", 1, true) and (line:find("validation loss", 1, true) or line:find("validate step:", 1, true))
     or line:find "[Ee]valuating" or line:find("Validation: iteration", 1, true) or line:find("eval metrics after step", 1, true)
     or line:find("Running Evaluation", 1, true) or line:find "['\"]eval_[%w_]+['\"]: " then return "evaluation" end
  if line:find("before the start of training step", 1, true) or line:find("Training starts at step", 1, true) then return "start" end
  return nil
end

return marks
