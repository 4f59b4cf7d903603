-- Counts how many tasks start in a window of time, in sixteenths of it. The oldest one counts whole, so that no stretch of that length ever
-- holds too many. `key` is a hash of counts by number of the part; `now` is in nanoseconds, as text.

-- How many more may start, and milliseconds until that may be more.
local function starts_left(key, most, window, now)
  local part, milliseconds = math.ceil(window / 16), tonumber(string.sub(now, 1, -7))
  local current = math.floor(milliseconds / part)
  local left, oldest, counts = most, current, redis.call('HGETALL', key)
  for i = 1, #counts, 2 do
    local at = tonumber(counts[i])
    if at and at >= current - 16 then
      left = left - (tonumber(counts[i + 1]) or 0)
      oldest = math.min(oldest, at)
    end
  end
  return math.max(0, left), (oldest + 17) * part - milliseconds
end

local function count_starts(key, number, window, now)
  local call, part = redis.call, math.ceil(window / 16)
  local current = math.floor(tonumber(string.sub(now, 1, -7)) / part)
  local parts = call('HKEYS', key)
  for i = 1, #parts do
    local at = tonumber(parts[i])
    if not at or at < current - 16 then call('HDEL', key, parts[i]) end
  end
  call('HINCRBY', key, current, number)
  call('PEXPIRE', key, 18 * part)
end
