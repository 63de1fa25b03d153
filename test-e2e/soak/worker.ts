import { setTimeout as pause } from 'node:timers/promises'
import { openAdministrator } from './administrator.js'
import { isSuccess, isUnknown, nextGateway, type Reply, type Run } from './caller.js'
import { openChecks } from './checks.js'
import { type Endpoint, openEndpoint, password } from './endpoint.js'
import { forget, grants, type Model, overrideKey, type Policy } from './model.js'
import type { Random } from './random.js'
import { excusing, rules } from './report.js'
import { resolver } from './resolve.js'
import { addressFor, viewChecker } from './views.js'
import { dropEndpoint, emptyWorkerState, retireEndpoint, writer } from './worker-state.js'

/** Works on its own rows, one operation at a time, and keeps a model of their expected state. */
export interface Worker extends Disposable {
  /** The prefix of the names of its rows. */
  readonly prefix: string
  readonly model: Model
  readonly endpoints: ReadonlyMap<string, Endpoint>
  /** Whether an operation has an unknown outcome, or a failover has lost writes, so that the model is not valid. */
  isUnsure(): boolean
  step(): Promise<void>
}

const POLL_MS = 15

export async function openWorker(wholeRun: Run, prefix: string, random: Random): Promise<Worker> {
  const { calm, losses } = wholeRun
  const state = emptyWorkerState(wholeRun.gateways.length)
  state.losses = losses.count()
  const mustResolve = (): boolean => state.unsure.size > 0 || state.losses !== losses.count()
  const report = excusing(wholeRun.report, () => state.losses !== losses.count())
  const run: Run = { ...wholeRun, report }
  const admin = await openAdministrator(wholeRun)
  const { model, endpoints, names, unsure } = state
  const { readBack, checkGone, checkListed, checkRefused, checkEnded } = openChecks(run, admin, random)
  const checkViews = viewChecker(run, state, random)
  const resolve = resolver(wholeRun, admin, prefix, state, random)
  const write = writer(run, admin, state)
  let count = 0

  const other = (gateway: number): number => nextGateway(run, gateway)
  const attributes = (): string[] =>
    random.coin(0.1) ? [] : ['a', 'b', 'c'].filter(() => random.coin(0.4)).map((one) => `${prefix}-${one}`)
  const roles = (ids: Iterable<string>): string[] => {
    const some = ['a', 'b', 'c'].filter(() => random.coin(0.6)).map((one) => `#${prefix}-${one}`)
    const id = random.coin(0.3) ? random.pick(ids) : undefined
    return id === undefined ? some : [...some, `@${id}`]
  }

  async function createIdentity(): Promise<void> {
    const [name, roleAttributes] = [`${prefix}-i${count++}`, attributes()]
    const enrollment = random.coin(0.3) ? { ott: true } : undefined
    const body = { name, type: 'Device', isAdmin: false, roleAttributes, ...(enrollment && { enrollment }) }
    const created = await write('POST', '/identities', body, name)
    if (!created) return
    model.identities.set(created.id, { name, attributes: roleAttributes })
    await readBack(`/identities/${created.id}`, { roleAttributes })
    await checkListed('identities', created.id, 1)
    if (names.size >= 6) return
    const credentials = { method: 'updb', identityId: created.id, username: name, password }
    if (!(await write('POST', '/authenticators', credentials, created.id))) return
    names.set(created.id, name)
    await logIn(created.id)
  }

  async function createService(): Promise<void> {
    const [name, roleAttributes] = [`${prefix}-s${count++}`, attributes()]
    const created = await write('POST', '/services', { name, encryptionRequired: true, roleAttributes }, name)
    if (!created) return
    model.services.set(created.id, { name, attributes: roleAttributes })
    await readBack(`/services/${created.id}`, { roleAttributes })
    await checkViews()
  }

  async function createPolicy(): Promise<void> {
    const body: Policy = {
      name: `${prefix}-p${count++}`,
      type: random.coin(0.7) ? 'Dial' : 'Bind',
      semantic: random.coin(0.6) ? 'AnyOf' : 'AllOf',
      identityRoles: roles(model.identities.keys()),
      serviceRoles: roles(model.services.keys()),
    }
    const created = await write('POST', '/service-policies', body, body.name)
    if (!created) return
    model.policies.set(created.id, { ...body })
    const { identityRoles, serviceRoles } = body
    await readBack(`/service-policies/${created.id}`, { identityRoles, serviceRoles })
    await checkViews()
  }

  async function patchSubject(kind: 'identities' | 'services', to = attributes()): Promise<boolean> {
    const id = random.pick(model[kind].keys())
    return id !== undefined && patchAttributes(kind, id, to)
  }

  async function patchAttributes(
    kind: 'identities' | 'services',
    id: string,
    roleAttributes: string[],
  ): Promise<boolean> {
    if (!(await write('PATCH', `/${kind}/${id}`, { roleAttributes }, id))) return false
    const subject = model[kind].get(id)
    if (subject) subject.attributes = roleAttributes
    return true
  }

  async function patchPolicy(): Promise<void> {
    const id = random.pick(model.policies.keys())
    if (id === undefined) return
    const identityRoles = roles(model.identities.keys())
    if (!(await setIdentityRoles(id, identityRoles))) return
    await readBack(`/service-policies/${id}`, { identityRoles })
    await checkViews()
  }

  async function setIdentityRoles(id: string, identityRoles: readonly string[]): Promise<boolean> {
    if (!(await write('PATCH', `/service-policies/${id}`, { identityRoles }, id))) return false
    const policy = model.policies.get(id)
    if (policy) policy.identityRoles = identityRoles
    return true
  }

  async function deletePolicy(id = random.pick(model.policies.keys())): Promise<void> {
    if (id === undefined || !(await write('DELETE', `/service-policies/${id}`, undefined, id))) return
    model.policies.delete(id)
    await checkGone('service-policies', id)
  }

  async function deleteService(): Promise<void> {
    const id = random.pick(model.services.keys())
    if (id === undefined || !(await write('DELETE', `/services/${id}`, undefined, id))) return
    forget(model, 'services', id)
    await checkGone('services', id)
    await checkViews()
  }

  async function deleteIdentity(): Promise<void> {
    const id = random.pick(model.identities.keys())
    if (id === undefined) return
    const { gateway } = state
    const mayBeLost = losses.watch()
    if (!(await write('DELETE', `/identities/${id}`, undefined, id))) return dropEndpoint(state, id)
    const endpoint = endpoints.get(id)
    forget(model, 'identities', id)
    names.delete(id)
    endpoints.delete(id)
    await checkGone('identities', id)
    if (!endpoint) return
    await checkRefused(endpoint, gateway)
    retireEndpoint(state, endpoint, mayBeLost())
  }

  async function override(): Promise<void> {
    const [identityId, serviceId] = [random.pick(names.keys()), random.pick(model.services.keys())]
    if (identityId === undefined || serviceId === undefined) return
    const key = overrideKey(identityId, serviceId)
    const path = `/identities/${identityId}/service-configs`
    const configId = model.overrides.get(key)
    if (configId !== undefined) {
      if (!(await write('DELETE', path, [{ serviceId, configId }], identityId, serviceId))) return
      model.overrides.delete(key)
    } else {
      const data = { protocol: 'tcp', address: addressFor(identityId), port: 80 }
      const body = { name: `${prefix}-c${count++}`, configTypeId: run.hostConfigType, data }
      const config = await write('POST', '/configs', body, identityId, serviceId)
      if (!config) return
      const link = [{ serviceId, configId: config.id }]
      if (!(await write('POST', path, link, identityId, serviceId))) return
      model.overrides.set(key, config.id)
    }
    await checkViews()
  }

  async function logIn(id: string): Promise<void> {
    const name = names.get(id)
    if (name === undefined) return
    const mayBeLost = losses.watch()
    const endpoint = await openEndpoint(run, state.gateway, id, name)
    if (!('apiSessionId' in endpoint)) {
      if (!isUnknown(endpoint)) report.violated(rules.valid, { login: id, status: endpoint.status })
      return
    }
    dropEndpoint(state, id)
    endpoints.set(id, endpoint)
    if (mayBeLost()) state.losable.add(endpoint.apiSessionId)
    const reply = await endpoint.call(other(state.gateway), 'GET', '/current-api-session')
    if (reply.status === 401) report.violated(rules.valid, { freshToken: endpoint.apiSessionId, status: 401 })
  }

  async function logOut(): Promise<void> {
    const endpoint = random.pick(endpoints.values())
    if (!endpoint) return
    const { gateway } = state
    const { identityId, apiSessionId } = endpoint
    const mayBeLost = losses.watch()
    const reply = random.coin(0.5)
      ? await admin.call(gateway, 'DELETE', `/api-sessions/${apiSessionId}`)
      : await endpoint.call(gateway, 'DELETE', '/current-api-session')
    endpoints.delete(identityId)
    if (isSuccess(reply)) await checkRefused(endpoint, gateway)
    else if (!isUnknown(reply)) report.violated(rules.valid, { logout: apiSessionId, status: reply.status })
    retireEndpoint(state, endpoint, isSuccess(reply) && mayBeLost())
    await logIn(identityId)
  }

  async function dial(): Promise<void> {
    const endpoint = random.pick(endpoints.values())
    if (!endpoint) return
    const { identityId } = endpoint
    const type = random.coin(0.8) ? 'Dial' : 'Bind'
    const create = (gateway: number, serviceId: string): Promise<Reply> =>
      endpoint.call(gateway, 'POST', '/sessions', { serviceId, type })
    const granted = [...model.services.keys()].find((id) => grants(model, identityId, id, type))
    if (granted === undefined) {
      const serviceId = random.pick(model.services.keys())
      if (serviceId === undefined) return
      const since = performance.now()
      const reply = await create(state.gateway, serviceId)
      if (isSuccess(reply)) await checkEnded(identityId, serviceId, type, since)
      return
    }
    const since = performance.now()
    let reply = await create(state.gateway, granted)
    while (!isSuccess(reply) && !calm.isOverdue(since)) {
      await pause(POLL_MS)
      reply = await create(state.gateway, granted)
    }
    if (isUnknown(reply)) return
    if (!isSuccess(reply)) {
      if (unsure.size === 0)
        report.violated(rules.dialed, {
          identityId,
          serviceId: granted,
          type,
          status: reply.status,
          error: reply.error,
        })
      return
    }
    report.passed(rules.dialed)
    if (random.coin(0.4)) await revoke(endpoint, granted, type, create)
  }

  async function revoke(
    { identityId }: Endpoint,
    serviceId: string,
    type: Policy['type'],
    create: (gateway: number, serviceId: string) => Promise<Reply>,
  ): Promise<void> {
    const how = random.int(4)
    if (how === 0) await patchAttributes('identities', identityId, [])
    else if (how === 1) await patchAttributes('services', serviceId, [])
    const only = (policies: Model['policies']) => ({ ...model, policies })
    for (const [id, policy] of [...model.policies]) {
      if (!grants(only(new Map([[id, policy]])), identityId, serviceId, type)) continue
      if (how === 2) await deletePolicy(id)
      else if (!(await setIdentityRoles(id, [`#${prefix}-nobody`]))) break
    }
    if (unsure.size > 0 || grants(model, identityId, serviceId, type)) return
    const since = performance.now()
    if (isSuccess(await create(state.gateway, serviceId)))
      report.violated(rules.ended, {
        identityId,
        serviceId,
        type,
        how,
        created: 'at the gateway of the revocation',
      })
    if (isSuccess(await create(other(state.gateway), serviceId)))
      report.note('created elsewhere after a revocation')
    await checkEnded(identityId, serviceId, type, since)
  }

  type Step = readonly [weight: number, isPossible: () => boolean, step: () => Promise<unknown>]
  const steps: readonly Step[] = [
    [12, () => model.identities.size < 14, createIdentity],
    [10, () => model.services.size < 8, createService],
    [12, () => model.policies.size < 8, createPolicy],
    [10, () => true, async () => (await patchSubject('identities')) && checkViews()],
    [8, () => true, async () => (await patchSubject('services')) && checkViews()],
    [6, () => true, patchPolicy],
    [5, () => model.policies.size > 3, async () => deletePolicy()],
    [4, () => model.services.size > 4, deleteService],
    [5, () => model.identities.size > 8, deleteIdentity],
    [10, () => names.size > 0, override],
    [22, () => endpoints.size > 0, dial],
    [6, () => endpoints.size > 0, logOut],
    [
      3,
      () => names.size > endpoints.size,
      async () => logIn([...names.keys()].find((id) => !endpoints.has(id)) ?? ''),
    ],
  ]

  return {
    prefix,
    model,
    endpoints,
    isUnsure: mustResolve,
    async step() {
      if (mustResolve()) return resolve()
      if (random.coin(0.05)) state.gateway = other(state.gateway)
      const possible = steps.filter(([, isPossible]) => isPossible())
      let draw = random.int(possible.reduce((sum, [weight]) => sum + weight, 0))
      for (const [weight, , step] of possible) {
        draw -= weight
        if (draw < 0) return void (await step())
      }
    },
    [Symbol.dispose]() {
      admin[Symbol.dispose]()
      for (const endpoint of [...endpoints.values(), ...state.ended]) endpoint[Symbol.dispose]()
    },
  }
}
