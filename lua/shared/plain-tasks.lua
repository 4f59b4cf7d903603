-- New tasks of this place with nothing special: those of most steps. Part of links.lua, behind link-fields.lua.
do
  local call = redis.call
  local STEP = string.byte('r')

  -- The ids of those that became pending in this script.
  L.fresh = {}

  -- Also those that became pending in this script are in the list then.
  function L.push_pending()
    local fresh = L.fresh
    if #fresh == 0 then return end
    for first = 1, #fresh, 1000 do
      call('LPUSH', L.pending, unpack(fresh, first, math.min(first + 999, #fresh)))
    end
    L.fresh = {}
  end

  -- Creates tasks of steps with nothing special, as far as there is none with such an id. `list` has five values for each: id, link,
  -- message, the id of the run, the step. Calls `refused` with run, step and status of each that is not created.
  function L.create_plain(list, refused)
    local keys, ids, n = {}, {}, 0
    for i = 1, #list, 5 do
      n = n + 1
      ids[n] = list[i]
      keys[n] = L.task_prefix .. list[i]
    end
    local absent = true
    for first = 1, n, 1000 do
      absent = absent and call('EXISTS', unpack(keys, first, math.min(first + 999, n))) == 0
    end
    L.read_links(ids, n)
    local fresh, known_link, set_link, now = L.fresh, L.known_link, L.set_link, L.now_nanos
    for i = 1, n do
      local at = 5 * i
      local id, link, message = ids[i], list[at - 3], list[at - 2]
      if absent then
        local before = known_link(id)
        if before and string.byte(before) ~= STEP then L.add_link(id, link) else set_link(id, link) end
        call('HSET', keys[i], 'msg', message, 'state', 'pending', 'pending_since', now)
        fresh[#fresh + 1] = id
      else
        local status = L.guard(L.create, { id = id, link = link, message = message })
        if status ~= 'enqueued' then refused(list[at - 1], list[at], status) end
      end
    end
  end
end
