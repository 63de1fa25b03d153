import { createHash, randomUUID, X509Certificate } from 'node:crypto'
import {
  type Channel,
  CreateTerminatorResult,
  CreateTerminatorV2Request,
  CreateTerminatorV2Response,
  circuitRequestHeader,
  circuitResponseHeader,
  ctrlType,
  decodeText,
  edgeType,
  encodeBytesMap,
  encodeText,
  encodeTextList,
  Fault,
  FaultSubject,
  type Headers,
} from '@overlay/channel'
import { type Api, clientRoot, openApi } from './api.js'
import type { Fleet } from './fleet.js'
import { counting, type Load } from './load.js'
import type { Bench } from './scenario.js'
import { allAttribute } from './topology.js'

const REQUEST_MS = 10_000
const peerData = encodeBytesMap(new Map([[1003, Buffer.alloc(32, 1)]])) // a public key

/** Sets up circuits through the first router, which hosts, too. Those of a round are removed after it. */
export function newCircuits(): (bench: Bench) => Promise<Load> {
  let headers: Headers | undefined
  const open = new Set<string>()
  return async (bench) => {
    const fleet = bench.fleet()
    headers ??= await host(bench, fleet.first())
    await removeAll(fleet, open)
    const own = headers
    return {
      async run({ concurrency, seconds }) {
        const { latency, failures, answered } = counting()
        const end = performance.now() + seconds * 1000
        const worker = async (): Promise<void> => {
          while (performance.now() < end) {
            const started = performance.now()
            const request = { type: edgeType.createCircuitV2, headers: own }
            const reply = await fleet.first().request(request, REQUEST_MS)
            const isOpen = reply.type === edgeType.createCircuitV2Response
            answered(isOpen ? 200 : 500, performance.now() - started)
            if (isOpen) open.add(decodeText(reply.headers.get(circuitResponseHeader.circuitId) ?? reply.body))
            else console.error(decodeText(reply.body))
          }
        }
        await Promise.all(Array.from({ length: concurrency }, worker))
        return { latency, failures }
      },
    }
  }
}

async function removeAll(fleet: Fleet, open: Set<string>): Promise<void> {
  if (open.size === 0) return
  await new Promise<void>((resolve) => {
    fleet.onUnroute = (circuitId) => {
      open.delete(circuitId)
      if (open.size === 0) resolve()
    }
    for (const id of open) {
      const body = Fault.encode({ subject: FaultSubject.INGRESS, id, iteration: 0 }).finish()
      fleet.first().send({ type: ctrlType.fault, body })
    }
  })
}

/** Hosts a service at the router. Returns the headers of a request for a circuit to it. */
async function host(bench: Bench, channel: Channel): Promise<Headers> {
  const { admin, seeded, url, run } = bench
  const [certificate] = seeded.certificates
  if (!certificate) throw new Error('no identity has a certificate')
  using api = openApi(url, clientRoot, 1, certificate)
  const { token, identityId } = await api.request<{ token: string; identityId: string }>(
    'POST',
    '/authenticate?method=cert',
    {},
  )
  api.use(token)
  const serviceId = await createService(admin, identityId, `bench-circuits-${run}`)
  const fingerprint = createHash('sha1').update(new X509Certificate(certificate.cert).raw).digest('hex')
  const session = async (type: string): Promise<string> =>
    (await api.request<{ token: string }>('POST', '/sessions', { serviceId, type })).token
  const body = CreateTerminatorV2Request.encode(
    CreateTerminatorV2Request.fromPartial({
      address: randomUUID(),
      sessionToken: await session('Bind'),
      fingerprints: [fingerprint],
    }),
  ).finish()
  const reply = await channel.request({ type: edgeType.createTerminatorV2, body }, REQUEST_MS)
  const { result, message } = CreateTerminatorV2Response.decode(reply.body)
  if (result !== CreateTerminatorResult.SUCCESS) throw new Error(`no terminator: ${message}`)
  return new Map([
    [circuitRequestHeader.sessionToken, encodeText(await session('Dial'))],
    [circuitRequestHeader.apiSessionToken, encodeText(token)],
    [circuitRequestHeader.fingerprints, encodeTextList([fingerprint])],
    [circuitRequestHeader.peerData, peerData],
  ])
}

/** A service that this identity may host and dial. */
async function createService(admin: Api, identityId: string, name: string): Promise<string> {
  const roleAttributes = [allAttribute]
  const service = { name, roleAttributes, encryptionRequired: false, terminatorStrategy: 'smartrouting' }
  const { id } = await admin.request<{ id: string }>('POST', '/services', service)
  for (const type of ['Dial', 'Bind'])
    await admin.request('POST', '/service-policies', {
      name: `${name}-${type}`,
      type,
      semantic: 'AnyOf',
      identityRoles: [`@${identityId}`],
      serviceRoles: [`@${id}`],
      postureCheckRoles: [],
    })
  return id
}
