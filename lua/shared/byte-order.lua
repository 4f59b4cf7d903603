-- Whether a text comes after another in the order of their bytes; Lua's own comparison depends on the locale.
local function comes_after(text, other)
  for i = 1, math.min(#text, #other) do
    local a, b = string.byte(text, i), string.byte(other, i)
    if a ~= b then return a > b end
  end
  return #text > #other
end
