-- Lists tasks of the lines of a fair queue, line by line, each in its order: ListingRole.listTasks.
--
-- Keys are found by scans of `fairRing`, but for those with a share, and then of `fairShares`: a held key always has one, so that a key that
-- changes between both is not left out. What a scan returns is sorted, so that a page can begin in the middle of it. If the scan comes to
-- another end than for the page before, its tables have changed, and all it returns is listed.
--
-- KEYS
--   1 fairRing
--   2 fairShares
-- ARGV
--   1 taskPrefix
--   2 linePrefix
--   3 size: how many at most
--   4 bytes: fewer are listed when their messages and results take more than this; '0' lists ids only
--   5 offset: how many to skip
--   6 source: 'ring', 'shares', or 'key' for one line
--   7 scan: the cursor of the scan
--   8 ends: the one that it returned for the page before; '' on the first page
--   9 done: 'some' to continue behind `score` in the line of `key`, 'all' to continue behind this line, '' to begin
--   10 key
--   11 score
-- Returns
--   1 when more may follow, how many are still to be skipped, source, scan, ends, done, key and score to continue with, and the tasks packed as
--   [id, pending_since, message, result, …] or [id, …]
--
-- Uses shared/stored.lua
-- Uses shared/byte-order.lua

local MOST_READ, SCANNED = 250, 20
local call, try = redis.call, redis.pcall
local size, budget, skip = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local source, scan, ends, done, at, score = ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10], ARGV[11]
local listed, count, is_full = {}, 0, size == 0

local function note(id, key)
  local n = #listed
  if budget == 0 then
    listed[n + 1] = id
  else
    local message, result, since = stored(key)
    budget = budget - #message - #result
    if budget <= 0 and count > 0 then return false end
    budget = math.max(budget, 1)
    listed[n + 1], listed[n + 2], listed[n + 3], listed[n + 4] = id, since, message, result
  end
  count = count + 1
  return true
end

local function read_line(name, after)
  local line = ARGV[2] .. name
  done, at, score = 'some', name, after
  if skip > 0 then
    local waiting = try('ZCARD', line)
    waiting = type(waiting) == 'number' and waiting or 0
    if skip >= waiting then
      skip, done = skip - waiting, 'all'
      return
    end
  end
  local wanted = size - count
  local entries = try('ZRANGE', line, after == '' and '-inf' or '(' .. after, '+inf', 'BYSCORE', 'LIMIT', skip, wanted, 'WITHSCORES')
  skip = 0
  for i = 1, entries.err and 0 or #entries, 2 do
    is_full = not note(entries[i], ARGV[1] .. entries[i])
    if is_full then return end
    score = entries[i + 1]
  end
  if entries.err or #entries < 2 * wanted then done = 'all' else is_full = true end
end

-- The names of a step of the scan, in order, where the scan goes on, and how many keys it has read.
local function scanned()
  if source == 'key' then return { at }, '0', 1 end
  local names, known = {}, {}
  local reply = call(source == 'ring' and 'ZSCAN' or 'HSCAN', KEYS[source == 'ring' and 1 or 2], scan, 'COUNT', SCANNED)
  local found = reply[2]
  for i = 1, #found, 2 do
    local skipped = known[found[i]] or source == 'ring' and call('HEXISTS', KEYS[2], found[i]) == 1
    known[found[i]] = true
    if not skipped then names[#names + 1] = found[i] end
  end
  table.sort(names, function(one, other)
    return comes_after(other, one)
  end)
  return names, reply[1], #found / 2 + 1
end

local more, read = true, 0
while more and not is_full and read < MOST_READ do
  local names, next_scan, number = scanned()
  read = read + number
  local last, within, behind = at, done == 'some' and score or '', done
  if ends ~= next_scan then behind = '' end
  ends = next_scan
  for i = 1, #names do
    local is_last = behind ~= '' and names[i] == last
    if is_last and behind == 'some' then
      read_line(names[i], within)
    elseif not is_last and (behind == '' or comes_after(names[i], last)) then
      read_line(names[i], '')
    end
    if is_full then break end
  end
  if not is_full then
    scan, ends, done, score = next_scan, '', '', ''
    if source ~= 'key' then at = '' end
    if scan == '0' then
      more = source == 'ring'
      source = 'shares'
    end
  end
end
if more and call('EXISTS', KEYS[1], KEYS[2]) == 0 then more = false end
return { more and 1 or 0, skip, source, scan, ends, done, at, score, cmsgpack.pack(listed) }
