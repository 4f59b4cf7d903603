-- Lists tasks of a sorted set, lowest score first or highest: ListingRole.listTasks.
--
-- KEYS
--   1 sorted
-- ARGV
--   1 taskPrefix
--   2 size: how many at most
--   3 bytes: fewer are listed when their messages and results take more than this; '0' lists ids only
--   4 offset: how many to skip on the first page
--   5 score: of the entry to continue after; '' on the first page
--   6 after: its id
--   7 reverse: '1' lists the highest score first
-- Returns
--   1 when more follow, and the tasks packed as [id, score, message, result, …] or [id, score, …]
--
-- Uses shared/stored.lua

local call, sorted, budget, reverse = redis.call, KEYS[1], tonumber(ARGV[3]), ARGV[7] == '1'
local size = call('ZCARD', sorted)

-- Whether a member comes after the id, in the order of their bytes; Lua's own comparison depends on the locale.
local function comes_after(member, id)
  for i = 1, math.min(#member, #id) do
    local a, b = string.byte(member, i), string.byte(id, i)
    if a ~= b then return a > b end
  end
  return #member > #id
end

-- The rank after (score, id), whether or not that entry still exists: a binary search among the entries of the same score,
-- whose order is the same in both directions. Backwards, ranks are counted from the end.
local function is_beyond(member, id)
  if reverse then return not comes_after(id, member) end
  return comes_after(member, id)
end

local first = tonumber(ARGV[4])
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
local entries = call(range, sorted, first, first + tonumber(ARGV[2]) - 1, 'WITHSCORES')
local listed, count = entries, #entries / 2
if budget > 0 then
  listed, count = {}, 0
  for i = 1, #entries, 2 do
    local message, result = stored(ARGV[1] .. entries[i])
    budget = budget - #message - #result
    if budget < 0 and count > 0 then break end
    local n = #listed
    listed[n + 1], listed[n + 2], listed[n + 3], listed[n + 4] = entries[i], entries[i + 1], message, result
    count = count + 1
  end
end
return { size > first + count and 1 or 0, cmsgpack.pack(listed) }
