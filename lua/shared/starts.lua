-- Counts how many tasks start in a window of time, in 40 parts of it. The oldest part counts whole, so that no window ever
-- holds too many. `key` is a hash of counts by number of the part, and of the time of the last count.
-- Callers' clocks differ, and may be set back. So the time is that of the last count, plus what has passed since by Redis'
-- own clock; only a caller that is ahead of that moves it forward, once. For this the key outlives what it counts.
local EXTRA_TTL_MS = 3600000

-- Returns how many more may start, milliseconds until more may, and the time in milliseconds. `now`: nanoseconds as text.
local function starts_left(key, most, window, now)
  local part, time = math.ceil(window / 40), tonumber(string.sub(now, 1, -7))
  local left, counts, last = most, redis.call('HGETALL', key), nil
  for i = 1, #counts, 2 do
    if counts[i] == 'last' then last = tonumber(counts[i + 1]) end
  end
  if last then
    local lives = redis.call('PTTL', key)
    local known = lives < 0 and last or last + math.max(0, 42 * part + EXTRA_TTL_MS - lives)
    if known - time > part then time = known end -- a smaller difference is within the error of the parts
  end
  local current = math.floor(time / part)
  local oldest = current
  for i = 1, #counts, 2 do
    local at = tonumber(counts[i])
    if at and at >= current - 40 then
      left = left - math.floor(tonumber(counts[i + 1]) or 0)
      oldest = math.min(oldest, at)
    end
  end
  return math.max(0, left), (oldest + 41) * part - time, time
end

-- `time`: as `starts_left` returned it.
local function count_starts(key, number, window, time)
  local call, part = redis.call, math.ceil(window / 40)
  local current = math.floor(time / part)
  local parts = call('HKEYS', key)
  for i = 1, #parts do
    local at = tonumber(parts[i])
    if not at or at < current - 40 then call('HDEL', key, parts[i]) end
  end
  -- A count that is no number must not fail a call that has already written.
  if type(redis.pcall('HINCRBY', key, current, number)) == 'table' then call('HSET', key, current, number) end
  call('HSET', key, 'last', string.format('%.0f', time))
  call('PEXPIRE', key, 42 * part + EXTRA_TTL_MS)
end
