-- Which of the ids are still leased by the caller: a list of booleans, and the index after the last argument read.
-- The fences stand in ARGV from `at` on, two arguments for one stretch of ids after the other: the scores its holder may have
-- written last ("1700000031,1700000036"), and the number of ids.
local function held_leases(lease, ids, at)
  local held, last, call = {}, 0, redis.call
  while last < #ids do
    local accepted, count = ARGV[at], tonumber(ARGV[at + 1])
    local first, leased = last + 1, nil
    last, at = last + count, at + 2
    -- Asking who has a score costs a third of asking for everyone's score, unless many more have it.
    if count >= 8 then
      leased = {}
      for score in string.gmatch(accepted, '[^,]+') do
        if call('ZCOUNT', lease, score, score) > 2 * count then
          leased = nil
          break
        end
        local owners = call('ZRANGE', lease, score, score, 'BYSCORE')
        for i = 1, #owners do
          leased[owners[i]] = true
        end
      end
    end
    if leased then
      for i = first, last do
        held[i] = leased[ids[i]] or false
      end
    else
      for from = first, last, 1000 do
        local to = math.min(from + 999, last)
        local scores = call('ZMSCORE', lease, unpack(ids, from, to))
        for i = from, to do
          local score = scores[i - from + 1]
          held[i] = score == accepted
          -- Only a score with a fraction, which no asynq writes, could be spelled in two ways.
          if score and not held[i] then
            for candidate in string.gmatch(accepted, '[^,]+') do
              held[i] = held[i] or tonumber(candidate) == tonumber(score)
            end
          end
        end
      end
    end
  end
  return held, at
end
