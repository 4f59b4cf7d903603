-- Tasks that one place has another create, exactly once: part of links.lua.
--
-- A parcel may come twice, and late, when the task that it has created is long gone. So such a task takes three: the place is offered it; the
-- place accepts with a nonce that it keeps; the home, which knows what it has granted, sends the task for this nonce. So it is created once,
-- and nobody has to remember the tasks that have ended.
--
-- In its home each kind of offer has a function in L.grants: it gets `about` and the nonce, and returns what L.granted gets, and a message, and notes the
-- nonce; true when it has granted to this nonce before; nil when it grants nothing. In the other place L.granted has what creates the task.
do
  local call, try = redis.call, redis.pcall
  local OFFER_SECONDS = 604800

  local function id_of(kind, name)
    return kind .. ' ' .. name
  end

  -- `name` is the identity of the offer in its home. What is offered twice is created once.
  function L.offer(to, kind, name, about)
    L.post(to, 'offer ' .. id_of(kind, name), { kind = 'offer', of = kind, name = name, about = about, home = L.place })
  end

  -- The identity of the offer of one attempt of a step of a run. `about`: the run, since when it runs, the step, and how often it was run again.
  function L.name_of_step(about)
    return about.run .. ' ' .. about.step .. ' ' .. about.since .. ' ' .. (about.again or 0)
  end

  function L.offer_step(to, about)
    L.offer(to, 'step', L.name_of_step(about), about)
  end

  -- Whether a grant is on its way.
  function L.is_granting(to, kind, name)
    return call('HEXISTS', L.outbox, to .. ' grant ' .. id_of(kind, name)) == 1
  end

  -- Takes back an offer, as far as it has not left.
  function L.take_back(to, kind, name)
    call('HDEL', L.outbox, to .. ' offer ' .. id_of(kind, name), to .. ' grant ' .. id_of(kind, name))
  end

  local function key_of(home, kind, name)
    return L.base .. 'offer:' .. home .. ' ' .. id_of(kind, name)
  end

  -- An offer that this place has got is over: no grant of it creates anything.
  function L.forget_offer(home, kind, name)
    call('DEL', key_of(home, kind, name))
  end

  -- A place that is offered a task accepts, always with the same nonce until it has an answer.
  L.on.offer = function(body)
    local key = key_of(body.home, body.of, body.name)
    local nonce = try('GET', key)
    if type(nonce) ~= 'string' then
      local time = call('TIME')
      nonce = time[1] .. '.' .. time[2]
      call('SET', key, nonce, 'EX', OFFER_SECONDS)
    end
    local answer = { kind = 'accept', of = body.of, name = body.name, about = body.about, nonce = nonce, place = L.place }
    L.post(body.home, 'accept ' .. id_of(body.of, body.name), answer)
  end

  L.on.accept = function(body)
    local what, message = L.grants[body.of](body.about, body.nonce)
    if what == true then return end
    local answer = { kind = what and 'grant' or 'refuse', of = body.of, name = body.name, nonce = body.nonce, home = L.place, what = what }
    L.post(body.place, answer.kind .. ' ' .. id_of(body.of, body.name), answer, message)
  end

  -- Whether an offer is still that of this nonce; it is over then.
  local function takes(body)
    local key = key_of(body.home, body.of, body.name)
    return try('GET', key) == body.nonce and call('DEL', key) == 1
  end

  L.on.refuse = takes

  L.on.grant = function(body, message)
    if takes(body) then L.granted[body.of](body.what, message) end
  end
end
