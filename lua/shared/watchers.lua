-- Who watches the tasks of this place, and is notified of their ends. Part of links.lua, behind link-values.lua.
do
  local call, type = redis.call, type
  local byte = string.byte
  -- A list of watchers that is longer is added to in a hash, `watchers:<id>`.
  local LONG_LIST = 16384
  local TOLD = byte('-')

  -- The run and the step of a link; nil of what is no link of a step.
  function L.read_step_link(link)
    local run, field = L.parse_link(link)
    return run, run and string.sub(field, 3)
  end

  function L.watchers_of(id)
    local value = L.link_of(id)
    if not value then return nil, false end
    if byte(value) == TOLD then return string.sub(value, 2), true end
    return value, false
  end

  local function step_watcher(run, step)
    return { k = 'r', to = L.place, run = run, step = step }
  end

  local function decode(watchers)
    local run, step = L.read_step_link(watchers)
    if run then return { step_watcher(run, step) } end
    local known, list = pcall(cjson.decode, watchers)
    return known and type(list) == 'table' and list or nil
  end

  -- The list of those who watch a task, and whether they were notified; nil without any.
  function L.read_watchers(id)
    local watchers, told = L.watchers_of(id)
    return watchers and decode(watchers), told
  end

  function L.write_watchers(id, list, told)
    L.set_link(id, #list > 0 and (told and '-' or '') .. cjson.encode(list))
  end

  -- No value is short: see L.TOO_LONG.
  function L.list_of(text)
    return '[' .. string.rep(' ', L.TOO_LONG - #text) .. text .. ']'
  end

  -- `watcher`: { k, to, … }, see Watcher.
  function L.add_watcher(id, watcher)
    local list = L.watchers_of(id)
    local run, step = L.read_step_link(list or '')
    if run then list = L.list_of(cjson.encode(step_watcher(run, step))) end
    local text = cjson.encode(watcher)
    if not list then
      list = L.list_of(text)
    elseif #list > LONG_LIST and watcher.k == 'w' and L.guard(call, 'HSET', L.base .. 'watchers:' .. id, text, '') then
      return
    elseif not string.find(list, text, 1, true) then
      list = string.sub(list, 1, -2) .. ',' .. text .. ']'
    end
    L.set_link(id, list) -- those who were notified are notified again, as this one was not
    L.note_watched(id)
  end

  -- A task has ended: tells who watches it. Call it before its hash is deleted. `result` is the result, if any. `gone`: a failed
  -- task that is not kept, so that no rerun can follow.
  function L.ended(id, ok, reason, result, gone)
    if not L.has_links and not L.has_runs then return end
    local list = L.known_link(id)
    local run, step = L.read_step_link(list or '')
    if not run then -- a step of a run is no member
      local batch, number, watched = L.member_of(id)
      if batch then
        L.member_ended(batch, number, ok)
        if not watched then return end
      end
      list = L.watchers_of(id)
      if not list then return end
      run, step = L.read_step_link(list)
    end
    L.set_link(id, not (ok or gone) and '-' .. list)
    result = ok and L.result_of(id, result) or ''
    if run then return L.runs.post_end(run, step, ok, reason, result) end
    for _, watcher in ipairs(decode(list) or {}) do
      local tell = type(watcher) == 'table' and L.tell[watcher.k]
      if tell then L.guard(tell, watcher, id, ok, reason, result) end
    end
    -- What is shorter now had a watcher that was taken away.
    if #list > LONG_LIST / 2 then L.on.tellmore({ kind = 'tellmore', id = id, ok = ok, why = reason, gone = ok or gone }) end
  end

  L.on.tellmore = function(body)
    -- A failure of which some are not notified yet must not take the place of a success.
    local key = 'tellmore ' .. (body.ok and '+' or '-') .. body.id
    L.fan_out(L.base .. 'watchers:' .. body.id, key, body, body.gone, function(watcher)
      L.tell.w(watcher, body.id, body.ok, body.why)
    end)
  end

  -- A task has succeeded. Call it before its hash is deleted: without a `result` (nil or '') it is the stored one.
  function L.succeeded(id, result)
    L.ended(id, true, nil, result)
  end

  -- The watchers of a new task, added to those who have watched an older one of this id.
  function L.add_watchers(id, watchers)
    local texts = {}
    for i = 1, #watchers do
      texts[i] = cjson.encode(watchers[i])
    end
    if not L.link_of(id) then
      L.set_link(id, L.list_of(table.concat(texts, ',')))
      return L.note_watched(id)
    end
    for i = 1, #watchers do
      L.add_watcher(id, watchers[i])
    end
  end

  -- The run of this link watches the new task, too.
  function L.add_link(id, link)
    local run, step = L.read_step_link(link)
    L.add_watchers(id, { step_watcher(run, step) })
  end
end
