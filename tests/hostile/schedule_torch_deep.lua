-- budget: planning goes round sixty thousand ranks
for i = 1, 6 do
  local s = engine.schedule { kind = "1f1b", ranks = 60000, microbatches = 1 }
  s:simulate { F = 1, I = 1, W = 1, runtime = "torch-multi" }
end
