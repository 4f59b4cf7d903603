-- New tasks of this place. Part of links.lua, behind watchers.lua.
do
  local call, try, type = redis.call, redis.pcall, type

  function L.make_pending(id)
    call('HSET', L.task_prefix .. id, 'state', 'pending', 'pending_since', L.now_nanos)
    L.fresh[#L.fresh + 1] = id
  end

  function L.make_scheduled(id, at)
    call('HSET', L.task_prefix .. id, 'state', 'scheduled')
    call('ZADD', L.scheduled, at, id)
  end

  -- Whether an earlier call has created this: `how` is 'i' when its id was made for it, 'm' when its message tells. A task that
  -- links have changed since has more behind its message.
  local function is_present(key, how, message)
    if how == 'i' then return true end
    local stored = how == 'm' and try('HGET', key, 'msg')
    return type(stored) == 'string' and string.sub(stored, 1, #message) == message
  end

  -- Finds out at once that none of these tasks exists, if that is so.
  function L.find_absent(tasks)
    for first = 1, #tasks, 1000 do
      local keys = {}
      for i = first, math.min(first + 999, #tasks) do
        keys[#keys + 1] = L.task_prefix .. tasks[i].id
      end
      if call('EXISTS', unpack(keys)) == 0 then
        for i = first, first + #keys - 1 do
          tasks[i].is_absent = true
        end
      end
    end
  end

  -- Creates a task of this place. `task`: id, message; processAt (seconds), uniqueKey with uniqueTtl, watchers (a list) or link
  -- (L.step_link), after (see waits.lua), is_absent (L.find_absent), resent ('i' or 'm': creates nothing when is_present), room (is
  -- only made pending while fewer are). Returns enqueued, duplicate, conflict, or -1 less how many are pending; and whether it was created now.
  function L.create(task)
    local key, lock = L.task_prefix .. task.id, task.uniqueKey
    local exists = not task.is_absent and call('EXISTS', key) == 1
    if exists and is_present(key, task.resent, task.message) then return 'enqueued', false end
    if lock and call('EXISTS', lock) == 1 then return 'duplicate', false end
    if exists then return 'conflict', false end
    if task.room and not task.after and not task.processAt then
      local pending = call('LLEN', L.pending) + #L.fresh
      if pending >= task.room then return -1 - pending, false end
    end
    if lock then
      call('SET', lock, task.id, 'NX', 'EX', task.uniqueTtl)
      call('HSET', key, 'unique_key', lock)
    end
    if task.watchers and #task.watchers > 0 then L.add_watchers(task.id, task.watchers) end
    if task.after then
      call('HSET', key, 'msg', task.message)
      L.await(task.id, task.after, task.processAt)
    elseif task.processAt then
      call('HSET', key, 'msg', task.message, 'state', 'scheduled')
      call('ZADD', L.scheduled, task.processAt, task.id)
    else
      local link = task.link and L.new_link(task.id, task.link)
      if link then
        call('HSET', key, 'msg', task.message, 'state', 'pending', 'pending_since', L.now_nanos, 'step', link)
      else
        call('HSET', key, 'msg', task.message, 'state', 'pending', 'pending_since', L.now_nanos)
      end
      L.fresh[#L.fresh + 1] = task.id
    end
    return 'enqueued', true
  end
end
