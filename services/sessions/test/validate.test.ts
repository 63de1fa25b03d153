import {
  ctrlType,
  InspectRequest,
  InspectResponse,
  InvalidTerminatorReason,
  LinkPresence,
  type Message,
  type Outgoing,
  RouterLinks,
  TerminatorValidity,
  ValidatedCircuits,
  ValidatedComponent,
  ValidatedLinks,
  ValidatedRouterTerminators,
  ValidatedTerminator,
  ValidateTerminatorsV2Response,
} from '@overlay/channel'
import { Validation, type ValidationPart } from '@overlay/rpc'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { validate } from '../src/validation/validate.js'
import { type Replica, startControlNetwork, type TestNetwork } from './control.js'
import { context } from './routers.js'
import { connectRouter } from './test-router.js'

let network: TestNetwork
let replica: Replica
beforeAll(async () => {
  network = await startControlNetwork()
  replica = await network.replica()
})
afterAll(() => network[Symbol.asyncDispose]())

/** A router that answers inspections with these values, and says which of its terminators it knows. */
async function connect(
  name: string,
  values: Readonly<Record<string, unknown>>,
  known: readonly string[] = [],
) {
  const key = await network.createRouter(name)
  const asked: string[] = []
  const onMessage = ({ type, body }: Message): Outgoing | undefined => {
    if (type === ctrlType.validateTerminatorsV2) {
      const reason = InvalidTerminatorReason.UNKNOWN_TERMINATOR
      const state = (valid: boolean) => ({ valid, reason, detail: 'd', marker: 0n })
      const states = new Map(['t1', 't2'].map((id) => [id, state(known.includes(id))]))
      return {
        type: ctrlType.validateTerminatorsV2Response,
        body: ValidateTerminatorsV2Response.encode({ states }).finish(),
      }
    }
    if (type !== ctrlType.inspectRequest) return undefined
    const names = InspectRequest.decode(body).requestedValues
    asked.push(...names)
    const found = names.flatMap((one) =>
      Object.hasOwn(values, one) ? [{ name: one, value: JSON.stringify(values[one]) }] : [],
    )
    const answer = InspectResponse.encode({ success: true, errors: [], values: found }).finish()
    return { type: ctrlType.inspectResponse, body: answer }
  }
  return { ...(await connectRouter({ port: replica.port, key, onMessage })), id: key.id, asked }
}

async function run(what: Validation, ids: readonly string[], { fix = false, model = {} } = {}) {
  const parts = validate({
    ...{ ...replica.control, changeLog: replica.changeLog, directory: replica.directory },
    model: { validateModel: async (id) => (model as Record<string, never>)[id] },
    entities: {
      list: async () => ({
        rows: Buffer.from(JSON.stringify(ids.map((id) => ({ id })))),
        ...{ total: ids.length, limit: '', offset: 0, contentKey: '', next: Buffer.alloc(0) },
      }),
    },
  })({ what, filter: '', fix }, context)
  const all: ValidationPart[] = []
  for await (const part of parts) all.push(part)
  const [first, ...others] = all
  expect(first?.count).toBe(ids.length)
  return others.flatMap(({ results }) => results)
}

test('links of a router are compared with those that are stored', async () => {
  const peer = await connect('link peer', {})
  const links = [
    { id: 'both', dest: peer.id, dialed: true },
    { id: 'only router', dest: peer.id, dialed: false },
  ]
  const router = await connect('links', { links: { links, destinations: [], errors: [] } })
  const link = (id: string) => ({
    ...{ id, destinationRouterId: peer.id, protocol: 'tls', dialAddress: 'tls:h:1', costTags: [] },
    ...{ iteration: 1, connections: undefined },
  })
  const body = RouterLinks.encode({ links: ['both', 'stored'].map(link), fullRefresh: false }).finish()
  router.channel.send({ type: ctrlType.routerLinks, body })
  await expect.poll(() => replica.control.topology.table.of(router.id)).toHaveLength(2)
  const [result] = await run(Validation.VALIDATION_LINKS, [router.id])
  const { success, details, routerName } = ValidatedLinks.decode(result ?? Buffer.alloc(0))
  expect([success, routerName]).toEqual([true, 'links'])
  const { UNKNOWN, ESTABLISHED, PENDING } = LinkPresence
  expect(details.map((one) => [one.linkId, one.controllerState, one.routerState, one.isValid])).toEqual([
    ['both', PENDING, ESTABLISHED, true],
    ['only router', UNKNOWN, ESTABLISHED, false],
    ['stored', ESTABLISHED, UNKNOWN, false],
  ])
})

test('circuits of a router are compared with those that are stored', async () => {
  const circuits = {
    whole: { id: 'whole', destinations: { in: 'xg-edge-fwd', l1: 'link' } },
    lost: { id: 'lost', destinations: { in: 'xg-edge-fwd' } },
    over: { id: 'over', destinations: {} },
  }
  const edge = { circuits: { a: { circuitId: 'whole' } } }
  const values = {
    ...{ 'router-circuits': { circuits }, 'router-edge-circuits': edge },
    'router-sdk-circuits': { circuits: { a: { circuitId: 'whole' } } },
  }
  const router = await connect('circuits', values)
  await network.db.query(sql`
    insert into circuit (id, client_id, identity_id, service_id, terminator_id, instance_id, host_id, controller_id,
                         router_ids, link_ids, ingress_address, egress_address, initiator_local_address,
                         initiator_remote_address, terminator_local_address, terminator_remote_address)
    select id, 's', 'i', 'w', 't', '', 'h', 'c', array[${router.id}::text], '{}', 'in', 'out', '', '', '', ''
      from unnest(array['whole', 'lost', 'missing']) as id`)
  const old = await connect('no circuits', {})
  const results = await run(Validation.VALIDATION_CIRCUITS, [router.id, old.id, 'offline'])
  const [found, silent, offline] = results.map((result) => ValidatedCircuits.decode(result))
  const flags = [...(found?.details ?? [])].map(([id, one]) => [
    id,
    [one.missingInController, one.missingInForwarder, one.missingInEdge, one.missingInSdk]
      .map(Number)
      .join(''),
  ])
  expect(flags.sort()).toEqual([
    ['lost', '0011'],
    ['missing', '0100'],
    ['over', '1000'],
    ['whole', '0000'],
  ])
  expect(silent).toMatchObject({ success: true, details: new Map() })
  expect(offline).toMatchObject({ success: false, message: 'router offline is not connected' })
})

async function insertTerminators(routerId: string, binding: string, ...ids: string[]): Promise<void> {
  await network.db.query(sql`delete from terminator`)
  await network.db.query(sql`
    insert into terminator (id, service_id, router_id, binding, address)
    select id, 'wiki', ${routerId}, ${binding}, id from unnest(${ids}::text[]) as id`)
}

test.each([
  [Validation.VALIDATION_SDK_TERMINATORS, 'sdk-terminators', 'edge'],
  [Validation.VALIDATION_TUNNEL_TERMINATORS, 'ert-terminators', 'tunnel'],
])(
  'terminators that a router has established are compared with those that are stored (%i)',
  async (what, name, binding) => {
    const entries = [
      { id: 't1', state: 'established' },
      { id: 't2', state: 'establishing' },
      { id: 't3', state: 'established' },
    ]
    const router = await connect(name, { [name]: { entries } })
    await insertTerminators(router.id, binding, 't1', 't2', 't4')
    const [result] = await run(what, [router.id])
    const { details } = ValidatedRouterTerminators.decode(result ?? Buffer.alloc(0))
    const { VALID, UNKNOWN } = TerminatorValidity
    expect(
      details.map((one) => [one.terminatorId, one.routerState, one.controllerState, one.isValid]),
    ).toEqual([
      ['t1', 'established', VALID, true],
      ['t2', 'establishing', VALID, false],
      ['t3', 'established', UNKNOWN, false],
      ['t4', 'unknown', VALID, false],
    ])
  },
)

test('each terminator is validated by its router, and deleted if that is asked', async () => {
  const router = await connect('terminators', {}, ['t1'])
  await insertTerminators(router.id, 'edge', 't1', 't2')
  const validated = async (fix: boolean) =>
    (await run(Validation.VALIDATION_TERMINATORS, ['t1', 't2', 'gone'], { fix }))
      .map((result) => ValidatedTerminator.decode(result))
      .map(({ terminatorId, routerName, state, fixed, detail }) => [
        terminatorId,
        routerName,
        state,
        fixed,
        detail,
      ])
  const { VALID, UNKNOWN_TERMINATOR } = TerminatorValidity
  expect(await validated(false)).toEqual([
    ['t1', 'terminators', VALID, false, 'd'],
    ['t2', 'terminators', UNKNOWN_TERMINATOR, false, 'd'],
    ['gone', '', VALID, false, 'deleted meanwhile'],
  ])
  expect((await validated(true))[1]).toEqual(['t2', 'terminators', UNKNOWN_TERMINATOR, true, 'd'])
  const { rows } = await network.db.query(sql`select id from terminator`)
  expect(rows).toEqual([{ id: 't1' }])
})

test('an identity that a router reports as connected and that is shown as offline is an error', async () => {
  const connections = [{ id: 'c', closed: false }]
  const statuses = {
    identity_connections: {
      alice: { connections },
      bob: { connections },
      carol: { connections: [{ id: 'd', closed: true }] },
    },
  }
  const router = await connect('connections', { 'identity-connection-statuses': statuses })
  await network.db.query(sql`insert into identity_connection (identity_id, seen_at) values ('alice', now())`)
  const [result] = await run(Validation.VALIDATION_CONNECTIONS, [router.id])
  const { errors, componentType } = ValidatedComponent.decode(result ?? Buffer.alloc(0))
  expect([componentType, errors]).toEqual([
    'router',
    ['router reports identity bob connected, but controller disagrees'],
  ])
})

test('a router without the data model is valid, and one that is offline is not', async () => {
  const router = await connect('old', {})
  const results = (await run(Validation.VALIDATION_MODEL, [router.id, 'offline'])).map((result) =>
    ValidatedComponent.decode(result),
  )
  expect(results.map(({ success, errors }) => [success, ...errors])).toEqual([
    [true],
    [false, 'router offline is not connected'],
  ])
})

const hostile = 'a\u0000b\u001b[2J<script>'

test('what a router says cannot end the validation of others, and is shown without markup', async () => {
  const values = {
    'identity-connection-statuses': { identity_connections: { [hostile]: { connections: [{}] } } },
    'router-circuits': { circuits: [{ id: hostile, destinations: { [hostile]: hostile } }] },
    links: { links: [{ id: hostile, dest: hostile }] },
    'sdk-terminators': { entries: [{ id: hostile, state: hostile, createTime: hostile }] },
  }
  const router = await connect('hostile', values)
  const other = await connect('other', { 'identity-connection-statuses': { identity_connections: {} } })
  const { VALIDATION_CONNECTIONS, VALIDATION_CIRCUITS, VALIDATION_LINKS, VALIDATION_SDK_TERMINATORS } =
    Validation
  for (const what of [
    VALIDATION_CONNECTIONS,
    VALIDATION_CIRCUITS,
    VALIDATION_LINKS,
    VALIDATION_SDK_TERMINATORS,
  ]) {
    const results = await run(what, [router.id, other.id])
    expect(results).toHaveLength(2)
    expect(Buffer.concat(results).toString('latin1')).not.toMatch(/\[2J|script/)
  }
})

test('a router that says it has endlessly many links is not validated', async () => {
  const links = Array(50_001).fill({})
  const router = await connect('endless', { links: { links } })
  const [result] = await run(Validation.VALIDATION_LINKS, [router.id])
  expect(ValidatedLinks.decode(result ?? Buffer.alloc(0))).toMatchObject({
    success: false,
    message: 'the router has more than 50000 links',
    details: [],
  })
})
