-- Lists tasks of `pending` or `active`, the next to run, or the first claimed, first: ListingRole.listTasks.
--
-- KEYS
--   1 list
--   2 lease
-- ARGV
--   1 taskPrefix
--   2 size: how many at most
--   3 bytes: fewer are listed when their messages and results take more than this; '0' lists ids only
--   4 cutoff: seconds; a lease that ends then or before is over. '' ignores leases
--   5 seen: the position to begin at, or where the first anchor was
--   6… anchors: ids to continue after, the best first; none on the first page
-- Returns
--   1 when more follow, the position of the last one, the tasks packed as [id, mark, message, result, …] or [id, …], and the length of
--   the list. Of active tasks each has one more: its progress. The mark is '1' for an orphan, or since when a task is pending, in nanoseconds
--
-- Uses shared/stored.lua

-- An anchor is searched for this far around its old position first, then this far behind it.
local NEAR, FURTHER = 100, 1000

local call, list, budget, seen = redis.call, KEYS[1], tonumber(ARGV[3]), tonumber(ARGV[5])
local length = call('LLEN', list)

-- Tasks leave at the front, so that positions shrink; sometimes one is put back there.
local function find()
  local from = math.min(length, seen + NEAR)
  local positions = {}
  for index, id in ipairs(call('LRANGE', list, -from, -math.max(1, seen - NEAR))) do
    positions[id] = from - index + 1
  end
  for i = 6, #ARGV do
    if positions[ARGV[i]] then return positions[ARGV[i]] end
  end
  for i = 6, #ARGV do
    local index = call('LPOS', list, ARGV[i], 'RANK', -1, 'MAXLEN', seen + FURTHER)
    if index then return length - index end
  end
  return 0
end

local skip = seen
if #ARGV > 5 then skip = length > 0 and find() or 0 end
local ids = {}
if skip < length then ids = call('LRANGE', list, -(skip + tonumber(ARGV[2])), -(skip + 1)) end

local listed, count = {}, 0
for i = #ids, 1, -1 do
  local id, n = ids[i], #listed
  if budget == 0 then
    listed[n + 1] = id
  else
    local message, result, since, progress = stored(ARGV[1] .. id)
    budget = budget - #message - #result
    if budget <= 0 and count > 0 then break end
    budget = math.max(budget, 1)
    local mark = since
    if ARGV[4] ~= '' then
      local ends = call('ZSCORE', KEYS[2], id)
      mark = (not ends or tonumber(ends) <= tonumber(ARGV[4])) and '1' or ''
    end
    listed[n + 1], listed[n + 2], listed[n + 3], listed[n + 4] = id, mark, message, result
    if ARGV[4] ~= '' then listed[n + 5] = progress end
  end
  count = count + 1
end
return { length > skip + count and 1 or 0, skip + count, cmsgpack.pack(listed), length }
