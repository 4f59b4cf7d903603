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

-- Which of the ids are still leased by the caller: a list of booleans. `fences` holds, for one stretch of ids after the
-- other, the accepted scores and the number of ids: "1700000030*57 1700000031,1700000036*3".
local function held_leases(lease, ids, fences)
  local held, total = {}, #ids
  local accepted, left
  local next_fence = string.gmatch(fences, '(%S+)%*(%d+)')
  for first = 1, total, 1000 do
    local last = math.min(first + 999, total)
    local scores = redis.call('ZMSCORE', lease, unpack(ids, first, last))
    for i = first, last do
      if not left or left == 0 then
        accepted, left = next_fence()
        left = tonumber(left)
      end
      left = left - 1
      local score = scores[i - first + 1]
      held[i] = score == accepted or proves(score, accepted)
    end
  end
  return held
end
