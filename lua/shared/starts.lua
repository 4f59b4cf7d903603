-- Counts how many tasks start in a window of time. `key` is a hash of counts by the time, in milliseconds, at which these tasks start at
-- the latest, and of the time of the last count. What is counted at a time counts until the window after it is over: so no window ever
-- holds too many, as long as a task that does not start in time gives its start up. Up to 40 starts have times of their own; of more, those of a 40th of the window
-- share the last of its times.
-- Callers' clocks differ, and may be set back. So the time is that of the last count, plus what has passed since by Redis'
-- own clock; only a caller that is ahead of that by more than TOLERANCE_MS (a 40th of a short window) moves it forward, once. Where they differ
-- by less (one that is behind by a 40th of the window at most), what counts is decided by the earlier one, and what does not start at once is counted by the later one. For this the key outlives what it counts.
local EXTRA_TTL_MS, TOLERANCE_MS = 3600000, 25

-- Returns how many more may start, milliseconds until more may, the time in milliseconds, what of the hash no longer counts, by how much the time
-- is behind, and how many more may start when more may. `now`: nanoseconds as text.
local function starts_left(key, most, window, now)
  local time = tonumber(string.sub(now, 1, -7))
  local left, counts, last, behind = most, redis.call('HGETALL', key), nil, 0
  for i = 1, #counts, 2 do
    if counts[i] == 'last' then last = tonumber(counts[i + 1]) end
  end
  if last then
    local lives = redis.call('PTTL', key)
    local known = lives < 0 and last or last + math.max(0, 2 * window + EXTRA_TTL_MS - lives)
    local tolerance = math.ceil(window / 40)
    if time > known and time <= known + math.min(TOLERANCE_MS, tolerance) then
      time, behind = known, time - known
    elseif known > time + tolerance then
      time = known
    elseif known > time then
      behind = known - time
    end
  end
  local oldest, fewer, gone = nil, 0, {}
  for i = 1, #counts, 2 do
    local at = tonumber(counts[i])
    if at and at + window > time then
      local count = math.floor(tonumber(counts[i + 1]) or 0)
      left = left - count
      if count > 0 and (not oldest or at < oldest) then
        oldest, fewer = at, count
      end
    elseif counts[i] ~= 'last' and counts[i] ~= 'saving' then
      gone[#gone + 1] = counts[i]
    end
  end
  return math.max(0, left), (oldest or time) + window - time, time, gone, behind, fewer
end

-- When a task starts at the latest. `allowance`: for how many milliseconds after the count it may; `time` and `behind`: as `starts_left` returned them.
local function latest_start(most, window, time, allowance, behind)
  local part = most > 40 and math.ceil(window / 40) or 1
  if allowance > 0 then allowance = allowance + behind end
  return math.ceil((time + allowance) / part) * part
end

-- `at`: as `latest_start` returned it; `time` and `gone`: as `starts_left` did.
local function count_starts(key, number, at, window, time, gone)
  local call, field = redis.call, string.format('%.0f', at)
  if #gone > 0 then call('HDEL', key, unpack(gone, 1, math.min(#gone, 1000))) end
  -- A count that is no number must not fail a call that has already written.
  if type(redis.pcall('HINCRBY', key, field, number)) == 'table' then call('HSET', key, field, number) end
  call('HSET', key, 'last', string.format('%.0f', time))
  call('PEXPIRE', key, 2 * window + EXTRA_TTL_MS)
end

-- A task whose start was counted does not start. `from`: the earliest time for which it may have been counted. The first start that was
-- counted from then on no longer counts: that of the task, or an earlier one, and then the count of the task stays for that one. Not
-- when half the window has passed: the count may be gone. Returns whether it was so. `now`: milliseconds.
local function give_back_start(key, from, window, now)
  if now >= from + window / 2 then return false end
  local counts, first = redis.pcall('HGETALL', key), nil
  for i = 1, #counts, 2 do
    local at = tonumber(counts[i])
    if at and at >= from and (not first or at < first) and (tonumber(counts[i + 1]) or 0) >= 1 then first = at end
  end
  return first ~= nil and type(redis.pcall('HINCRBY', key, string.format('%.0f', first), '-1')) == 'number'
end
