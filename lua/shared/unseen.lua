-- Ends of tasks without a notice: of those that a Go server ran, say, or that were deleted. Part of links.lua, behind watchers.lua.
do
  local call, try, type = redis.call, redis.pcall, type

  -- Reads the field of a message with this tag: the last one counts. Returns text, or the number of a varint; nil without it.
  local function field_of(message, wanted)
    local at, size, found = 1, #message, nil
    local function varint()
      local value, factor = 0, 1
      while at <= size do
        local byte = string.byte(message, at)
        at = at + 1
        value = value + byte % 128 * factor
        if byte < 128 then break end
        factor = factor * 128
      end
      return value
    end
    while at <= size do
      local tag = varint()
      local wire, value = tag % 8, nil
      if wire == 0 then
        value = varint()
      elseif wire == 2 then
        local length = varint()
        if tag == wanted then value = string.sub(message, at, at + length - 1) end
        at = at + length
      elseif wire == 1 then
        at = at + 8
      elseif wire == 5 then
        at = at + 4
      else
        return found
      end
      if tag == wanted then found = value end
    end
    return found
  end

  local ERROR_MSG, RETENTION = 58, 96
  -- Seconds; see TECHNICAL_RETENTION.
  local TECHNICAL, TECHNICAL_FIELD = 604801, '\96\129\245\36'

  -- Why a task has failed that a server without links had begun, with no retention, before somebody watched it, and that is gone.
  L.UNSEEN = 'nobody saw its end: it had no retention, and was run by a server that knows no links'
  -- The watchers of such a task have `lost`: how that counts (succeeded or failed), or an empty text.
  local UNSEEN_MARK = '"lost":'

  -- Has a task that somebody watches now kept after its success, when a server runs it that knows no links. Returns whether it
  -- was not kept before.
  function L.retain(id, message)
    if (field_of(message, RETENTION) or 0) > 0 then return false end
    call('HSET', L.task_prefix .. id, 'msg', message .. TECHNICAL_FIELD)
    return true
  end

  local function may_be_unseen(list)
    return list and string.find(list, UNSEEN_MARK, 1, true) ~= nil
  end

  -- Also when the message is written again by a server that has had it since before somebody watched the task. From the next
  -- attempt on its end is seen.
  function L.retain_again(id)
    local list, told = L.watchers_of(id)
    local message = list and try('HGET', L.task_prefix .. id, 'msg')
    if type(message) ~= 'string' then return end
    L.retain(id, message)
    local known, watchers = pcall(cjson.decode, may_be_unseen(list) and list or '')
    if not known then return end
    for i = 1, #watchers do
      watchers[i].lost = nil
    end
    L.set_link(id, (told and '-' or '') .. L.list_of(string.sub(cjson.encode(watchers), 2, -2)))
  end

  -- The watcher of an active task whose message had no retention when its server took it, as far as is known.
  function L.mark_unseen(id, watcher, unkept, missing)
    if unkept or may_be_unseen(L.watchers_of(id)) then watcher.lost = missing or '' end
  end

  -- Notifies the watchers of a task that has ended without a notice: a Go server ran it, say, or it was deleted. Returns 1 when it did.
  function L.notice(id)
    local key, list, told = L.task_prefix .. id, L.watchers_of(id)
    local known -- what is known of a member
    if not list then
      local batch, number = L.member_of(id)
      if batch then
        known = L.end_of_member(batch, number)
        told = known ~= nil
      elseif not L.has_runs or call('EXISTS', key) == 1 or not L.runs.notice_gone(id) then
        return 0
      else
        return 1
      end
    end
    local state, unseen = try('HGET', key, 'state'), may_be_unseen(list)
    if unseen and type(state) == 'string' and state ~= 'active' and state ~= 'completed' then L.retain_again(id) end
    if type(state) ~= 'string' then
      if known then return 0 end
      L.ended(id, false, unseen and L.UNSEEN or 'deleted', nil, true)
    elseif state == 'completed' then
      local technical = field_of(call('HGET', key, 'msg') or '', RETENTION) == TECHNICAL
      if known == 'succeeded' and not technical then return 0 end
      L.succeeded(id)
      if technical then
        call('ZREM', L.completed, id)
        call('DEL', key)
      end
    elseif state == 'archived' and not told then
      local reason = field_of(call('HGET', key, 'msg') or '', ERROR_MSG)
      L.ended(id, false, reason and reason ~= '' and reason or 'archived')
    else
      return 0
    end
    return 1
  end
end
