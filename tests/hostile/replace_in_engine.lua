-- broken "engine is read-only"
engine.model.parameters = function() return { total = 1 } end
