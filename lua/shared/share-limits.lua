-- Weight, concurrency, rate and window of a share; those of a key alone when it cannot be read.
local function share_limits(text)
  local weight, concurrency, rate, window = string.match(text, '^(%S+) (%d+) (%d+) (%d+) ')
  if not weight then return 1, 0, 0, 1 end
  return tonumber(weight), tonumber(concurrency), tonumber(rate), math.max(1, tonumber(window))
end
