-- budget: a shape read over and over
while true do engine.model.parameters { layers = 32, hidden = 4096, vocab = 32000, heads = 32, ffn = 11008 } end
