-- budget: stages of a shape
local m = { layers = 32, hidden = 4096, vocab = 32000, heads = 32, ffn = 11008 }
while true do engine.model.stages(m, 32) end
