-- Lists tasks of a sorted set, lowest score first or highest: ListingRole.listTasks. Tasks that are held are in `retry`, too: they are
-- listed only as held.
--
-- KEYS
--   1 sorted
--   2 retry
--   3 held
-- ARGV
--   1 taskPrefix
--   2 size: how many at most
--   3 bytes: fewer are listed when their messages and results take more than this; '0' lists ids only
--   4 offset: how many to skip
--   5 score: of the entry to continue after; '' on the first page
--   6 after: its id
--   7 reverse: '1' lists the highest score first
-- Returns
--   1 when more follow, the tasks packed as [id, score, message, result, …] or [id, score, …], how many are still to be skipped, and the
--   last entry that was looked at: score and id, each '' without one. Of held tasks the score is that in `retry`, and each has two
--   more: since when it is held (nanoseconds), and its waitlist
--
-- Uses shared/stored.lua
-- Uses shared/byte-order.lua
-- Uses shared/hold.lua

-- How many entries one call reads at a time, and at most, where it leaves some out.
local CHUNK, MAX_READ = 200, 2000

local call, sorted, budget, reverse = redis.call, KEYS[1], tonumber(ARGV[3]), ARGV[7] == '1'
local size = call('ZCARD', sorted)
local only_held = sorted == KEYS[3]
call('ZCARD', KEYS[2])
local filters = call('ZCARD', KEYS[3]) > 0 and (only_held or sorted == KEYS[2])

-- The rank after (score, id), whether or not that entry still exists: a binary search among the entries of the same score,
-- whose order is the same in both directions. Backwards, ranks are counted from the end.
local function is_beyond(member, id)
  if reverse then return not comes_after(id, member) end
  return comes_after(member, id)
end

local first, skip = tonumber(ARGV[4]), 0
if filters then
  first, skip = 0, first
end
if ARGV[5] ~= '' then
  local low, high = call('ZCOUNT', sorted, '-inf', '(' .. ARGV[5]), call('ZCOUNT', sorted, '-inf', ARGV[5])
  while low < high do
    local middle = math.floor((low + high) / 2)
    if is_beyond(call('ZRANGE', sorted, middle, middle)[1], ARGV[6]) then
      high = middle
    else
      low = middle + 1
    end
  end
  first = reverse and size - low or low
end

local range = reverse and 'ZREVRANGE' or 'ZRANGE'
local listed, count, bytes, wanted = {}, 0, 0, tonumber(ARGV[2])
local read, last_score, last_id, is_full = 0, '', '', false

-- Lists a task, unless there is no room for its bytes.
local function add(id, score, since, waitlist)
  local n = #listed
  listed[n + 1], listed[n + 2] = id, score
  if budget > 0 then
    local message, result = stored(ARGV[1] .. id)
    bytes = bytes + #message + #result
    if bytes > budget and count > 0 then
      listed[n + 1], listed[n + 2] = nil, nil
      return false
    end
    listed[n + 3], listed[n + 4] = message, result
    if since then
      listed[n + 5], listed[n + 6] = since, waitlist
    end
  end
  count = count + 1
  return true
end

-- Whether it is listed here; its score in `retry`, and how it is held.
local function sift(id, score)
  if not filters then return true, score end
  local due = only_held and call('ZSCORE', KEYS[2], id) or score
  local since, waitlist = hold(ARGV[1] .. id, due)
  return only_held == (since ~= nil), due, since, waitlist
end

repeat
  local step = filters and math.max(CHUNK, wanted) or wanted
  local entries = call(range, sorted, first + read, first + read + step - 1, 'WITHSCORES')
  for i = 1, #entries, 2 do
    local id, score = entries[i], entries[i + 1]
    local fits, due, since, waitlist = sift(id, score)
    if fits and skip > 0 then
      skip = skip - 1
    elseif fits and (count == wanted or not add(id, due, since, waitlist)) then
      is_full = true
      break
    end
    read, last_score, last_id = read + 1, score, id
  end
until is_full or not filters or #entries < 2 * step or read >= MAX_READ
return { size > first + read and 1 or 0, cmsgpack.pack(listed), skip, last_score, last_id }
