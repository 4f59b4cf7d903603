-- Whether a lease score, as ZSCORE gives it, is among the scores (comma-separated) its holder may have written last.
-- Compared as text first: only a score with a fraction, which no asynq writes, could be spelled in two ways.
local function proves(score, accepted)
  if score == accepted then return true end
  if not score then return false end
  local number = tonumber(score)
  for candidate in string.gmatch(accepted, '[^,]+') do
    if tonumber(candidate) == number then return true end
  end
  return false
end

-- The ids leased with one of the accepted scores, as a set; nil when they are many more than the `count` asked for.
local function leased_with(lease, accepted, count)
  local leased = {}
  for score in string.gmatch(accepted, '[^,]+') do
    if redis.call('ZCOUNT', lease, score, score) > 2 * count then return nil end
    local ids = redis.call('ZRANGE', lease, score, score, 'BYSCORE')
    for i = 1, #ids do
      leased[ids[i]] = true
    end
  end
  return leased
end

-- Which of the ids are still leased by the caller: a list of booleans. `fences` holds, for one stretch of ids after the
-- other, the accepted scores and the number of ids: "1700000030*57 1700000031,1700000036*3".
-- Asking who has a score costs a third of asking for everyone's score, and is done where a stretch makes it worth while.
local function held_leases(lease, ids, fences)
  local held, last = {}, 0
  for accepted, length in string.gmatch(fences, '(%S+)%*(%d+)') do
    local first, count = last + 1, tonumber(length)
    last = last + count
    local leased = count >= 8 and leased_with(lease, accepted, count)
    if leased then
      for i = first, last do
        held[i] = leased[ids[i]] or false
      end
    else
      for from = first, last, 1000 do
        local to = math.min(from + 999, last)
        local scores = redis.call('ZMSCORE', lease, unpack(ids, from, to))
        for i = from, to do
          held[i] = proves(scores[i - from + 1], accepted)
        end
      end
    end
  end
  return held
end
