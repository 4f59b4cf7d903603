-- Stores what the handler of an active task has said, if the caller has leased it: NotesRole.write.
-- In the hash of the task, per kind ('log' or 'chunk'): `note:<kind>` is "first next entries bytes dropped start", `note:<kind>#<n>` a piece
-- ("<entries> <JSON>") with a number from `first` to before `next`; `start` is where those of the last attempt that emitted begin.
-- `note:progress` is JSON.
--
-- KEYS
--   1 lease
--   2 task
-- ARGV
--   1 id
--   2 progress: JSON; empty leaves it as it is
--   3 fresh: '1' drops the chunks that are there
--   4 limits: "<entries> <bytes>" of log, and of chunk; the oldest pieces above that are dropped, but not the newest
--   5… the fences: see shared/fence.lua; then per piece: kind, count, text, and how many entries before it were left out
-- Returns
--   1, or 0 when the task is not the caller's and nothing was written
--
-- Uses shared/fence.lua

local missing, _, at = missing_leases(KEYS[1], { ARGV[1] }, 5)
if missing[1] then return 0 end
local key, call = KEYS[2], redis.call
if call('HGET', key, 'state') ~= 'active' then return 0 end

local lines, log_bytes, chunks, chunk_bytes = string.match(ARGV[4], '(%d+) (%d+) (%d+) (%d+)')
local most = {
  log = { entries = tonumber(lines), bytes = tonumber(log_bytes) },
  chunk = { entries = tonumber(chunks), bytes = tonumber(chunk_bytes) },
}
local heads = {}

local function head_of(kind)
  if not heads[kind] then
    local stored = call('HGET', key, 'note:' .. kind) or ''
    local first, next, entries, bytes, dropped, start = string.match(stored, '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
    heads[kind] = {
      first = tonumber(first or 0),
      next = tonumber(next or 0),
      entries = tonumber(entries or 0),
      bytes = tonumber(bytes or 0),
      dropped = tonumber(dropped or 0),
      start = tonumber(start or 0),
    }
  end
  return heads[kind]
end

local function drop_first(kind, head)
  local field = 'note:' .. kind .. '#' .. head.first
  local piece = call('HGET', key, field) or ''
  local count = tonumber(string.match(piece, '^%d+') or 0)
  call('HDEL', key, field)
  head.first, head.entries, head.bytes = head.first + 1, head.entries - count, head.bytes - #piece
  head.dropped = head.dropped + count
end

if ARGV[3] == '1' then
  local head = head_of('chunk')
  while head.first < head.next do
    drop_first('chunk', head)
  end
  head.entries, head.bytes, head.dropped, head.start = 0, 0, 0, head.next
end
for i = at, #ARGV, 4 do
  local kind, count, text = ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 2]
  local head, piece = head_of(kind), ARGV[i + 1] .. ' ' .. text
  call('HSET', key, 'note:' .. kind .. '#' .. head.next, piece)
  head.next, head.entries, head.bytes = head.next + 1, head.entries + count, head.bytes + #piece
  head.dropped = head.dropped + tonumber(ARGV[i + 3])
  while (head.entries > most[kind].entries or head.bytes > most[kind].bytes) and head.first < head.next - 1 do
    drop_first(kind, head)
  end
end
for kind, head in pairs(heads) do
  local fields = { head.first, head.next, head.entries, head.bytes, head.dropped, head.start }
  call('HSET', key, 'note:' .. kind, table.concat(fields, ' '))
end
if ARGV[2] ~= '' then call('HSET', key, 'note:progress', ARGV[2]) end
return 1
