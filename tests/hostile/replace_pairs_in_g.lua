-- broken "_G is not available"
_G.pairs = function() end
