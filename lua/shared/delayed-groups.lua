-- Notes the groups that tasks of `scheduled` join when they are due: `<time>:<group>` with that time, in seconds, as score.
-- Go's forwarder puts such a task into its group and does not list the group, so that nobody finds it; list_delayed_groups
-- lists it. The key expires a day after its last time, in case nobody reads it. `entries` are pairs of time and group.
local function note_delayed_groups(key, now, entries)
  if #entries == 0 then return end
  local call = redis.call
  for i = 1, #entries, 2 do
    call('ZADD', key, entries[i], entries[i] .. ':' .. entries[i + 1])
  end
  local left = tonumber(call('ZRANGE', key, -1, -1, 'WITHSCORES')[2]) - tonumber(now)
  -- EXPIRE refuses 'inf', which a score of another program may be.
  call('EXPIRE', key, string.format('%.0f', math.min(math.max(left, 0), 1e13) + 86400))
end

-- Lists the groups of some notes that are due, and deletes these notes. Returns whether there may be more. Only of notes
-- before `first`, the lowest time left in `scheduled` (nil when it is empty): those tasks have all joined their groups.
local function list_delayed_groups(key, groups, group_prefix, now, first)
  local call, last = redis.call, now
  if first and tonumber(first) <= tonumber(now) then last = '(' .. first end
  local noted = call('ZRANGE', key, '-inf', last, 'BYSCORE', 'LIMIT', 0, 500)
  for i = 1, #noted do
    local group = string.match(noted[i], '^[^:]*:(.+)$')
    local size = group and redis.pcall('ZCARD', group_prefix .. group)
    if type(size) == 'number' and size > 0 then call('SADD', groups, group) end
  end
  if #noted > 0 then call('ZREM', key, unpack(noted)) end
  return #noted == 500
end
