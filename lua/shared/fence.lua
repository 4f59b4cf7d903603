-- Returns the indexes of the ids that are not leased by the caller, as a table that is mostly empty; a table for notes by id,
-- which mostly has room for all of them (growing one costs more than filling it); and the index after the last argument read.
-- The fences are in ARGV from `at` on, two arguments for each stretch of ids: the scores that its holder may have written
-- last ("1700000031,1700000036"), and the number of ids.
local function missing_leases(lease, ids, at)
  local missing, notes, last, call = {}, {}, 0, redis.call
  while last < #ids do
    local accepted, count = ARGV[at], tonumber(ARGV[at + 1])
    local first, leased = last + 1, {}
    last, at = last + count, at + 2
    -- Reading who has a score costs a third of reading each score, unless many more ids have it.
    local most = 2 * count + 8
    for score in string.gmatch(accepted, '[^,]+') do
      local owners = call('ZRANGE', lease, score, score, 'BYSCORE', 'LIMIT', '0', most + 1)
      if #owners > most then
        leased = nil
        break
      end
      for i = 1, #owners do
        leased[owners[i]] = true
      end
    end
    if leased then
      notes = leased
      for i = first, last do
        if not leased[ids[i]] then missing[i] = true end
      end
    else
      for from = first, last, 1000 do
        local to = math.min(from + 999, last)
        local scores = call('ZMSCORE', lease, unpack(ids, from, to))
        for i = from, to do
          local score = scores[i - from + 1]
          local held = score == accepted
          -- Only a score with a fraction, which no asynq writes, has two spellings.
          if score and not held then
            for candidate in string.gmatch(accepted, '[^,]+') do
              held = held or tonumber(candidate) == tonumber(score)
            end
          end
          if not held then missing[i] = true end
        end
      end
    end
  end
  return missing, notes, at
end
