import { execFile, execFileSync } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** A bridge of this machine, at which each pod has an address, and the name server of the pods. */
export interface PodNetwork extends AsyncDisposable {
  /** Of the machine, and of the name server. */
  readonly host: string
  readonly bridge: string
  /** An address for a pod or a service. A free one is used again as late as possible. */
  allocate(): string
  /** Gives the network namespace of the process an interface with the address. */
  attach(pid: number, address: string): Promise<void>
  /** Takes the interface away. The kernel may keep the namespace of a killed process for minutes, for its connections. */
  detach(address: string): Promise<void>
  /** Lets this process listen at the address, which pods that are attached later can reach. */
  own(address: string): Promise<void>
}

const PREFIX = 'ovl'
let opened = 0
/**
 * Of the bridge. Without one that is set, it takes the lowest of its interfaces: pods that come and go would change it,
 * and other pods would send to the former one for up to a minute.
 */
const ETHERNET_ADDRESS = '02:00:00:00:00:01'

/** @param resolve the addresses of a service, or of a whole name outside the cluster; undefined: there is no such name */
export async function openPodNetwork(
  resolve: (name: string) => readonly string[] | undefined,
): Promise<PodNetwork> {
  await removeStale()
  const number = opened++
  const bridge = `${PREFIX}${process.pid}${String.fromCharCode(97 + (number % 26))}`
  const net = await freeNetwork(process.pid + number)
  const host = `${net}.1`
  await ip(
    `link add ${bridge} address ${ETHERNET_ADDRESS} type bridge`,
    `addr add ${host}/24 dev ${bridge}`,
    `link set ${bridge} up`,
  )
  const stopNames = await serveNames(host, resolve)
  let last = 1
  const beyond: string[] = []
  const outsideOf = (address: string): string => `${bridge}-${address.split('.').at(-1)}`
  return {
    host,
    bridge,
    allocate() {
      if (last === 254) throw new Error('no address is left')
      return `${net}.${++last}`
    },
    async attach(pid, address) {
      const outside = outsideOf(address)
      await ip(
        `link add ${outside} type veth peer name eth0 netns ${pid}`,
        `link set ${outside} master ${bridge} up`,
      )
      const inside = ['link set lo up', `addr add ${address}/24 dev eth0`, 'link set eth0 up']
      await execIn(pid, [...inside, ...beyond.map((one) => `route add ${one} dev eth0`)])
    },
    async detach(address) {
      const outside = outsideOf(address)
      const isThere = () => existsSync(`/sys/class/net/${outside}`)
      if (!isThere()) return
      await ip(`link del ${outside}`).catch((err: unknown) => {
        if (isThere()) throw err // else it has vanished with its namespace
      })
    },
    async own(address) {
      await ip(`addr add ${address}/32 dev ${bridge}`)
      if (!address.startsWith(`${net}.`)) beyond.push(address)
    },
    async [Symbol.asyncDispose]() {
      stopNames()
      await ip(`link del ${bridge}`)
    },
  }
}

/** Of test processes that were killed. The interfaces of pods vanish with their processes. */
async function removeStale(): Promise<void> {
  const { stdout } = await run('ip', ['-o', 'link', 'show', 'type', 'bridge'])
  for (const [, name = '', pid] of stdout.matchAll(new RegExp(`: (${PREFIX}(\\d+)[a-z]):`, 'g')))
    if (!existsSync(`/proc/${pid}`)) {
      await ip(`link del ${name}`)
      await run('nft', ['delete', 'table', 'bridge', name]).catch(() => undefined) // it may have had none
    }
}

/** The first 24 bits of a network that this machine does not use, of those for the inside of a provider. */
async function freeNetwork(first: number): Promise<string> {
  const { stdout } = await run('ip', ['-o', '-4', 'addr'])
  for (let at = first % 16_384, tries = 0; tries < 16_384; at = (at + 1) % 16_384, tries++) {
    const net = `100.${64 + (at >> 8)}.${at & 255}`
    if (!stdout.includes(` ${net}.`)) return net
  }
  throw new Error('no network is free')
}

async function ip(...commands: string[]): Promise<void> {
  for (const command of commands) await run('ip', command.split(' '))
}

async function execIn(pid: number, commands: readonly string[]): Promise<void> {
  const script = commands.map((command) => `ip ${command}`).join(' && ')
  await run('nsenter', [`--net=/proc/${pid}/ns/net`, 'sh', '-c', script])
}

const TYPE_A = 1
const NO_NAME = 3

/** Answers for addresses of names such as `identity`, `identity.overlay.svc.cluster.local` and `db.example.org`. Returns its end. */
async function serveNames(
  host: string,
  resolve: (name: string) => readonly string[] | undefined,
): Promise<() => void> {
  const socket = createSocket('udp4')
  socket.on('message', (query, from) => {
    const answer = answerTo(query, resolve)
    if (answer) socket.send(answer, from.port, from.address)
  })
  socket.bind(53, host)
  await once(socket, 'listening')
  return () => socket.close()
}

/** RFC 1035 */
function answerTo(
  query: Buffer,
  resolve: (name: string) => readonly string[] | undefined,
): Buffer | undefined {
  const labels: string[] = []
  let at = 12
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  if (at + 5 > query.length) return undefined
  const [name = '', ...domain] = labels
  const isOurs = domain.length === 0 || domain[1] === 'svc' || domain.join('.') === 'overlay'
  const addresses = resolve((isOurs ? name : labels.join('.')).toLowerCase())
  const found = query.readUInt16BE(at + 1) === TYPE_A ? (addresses ?? []) : []
  const head = Buffer.alloc(12)
  query.copy(head, 0, 0, 2)
  head.writeUInt16BE(0x8580 | (addresses ? 0 : NO_NAME), 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt16BE(found.length, 6)
  const answers = found.map((address) =>
    Buffer.from([0xc0, 12, 0, TYPE_A, 0, 1, 0, 0, 0, 0, 0, 4, ...address.split('.').map(Number)]),
  )
  return Buffer.concat([head, query.subarray(12, at + 5), ...answers])
}

/** Whether this process may make namespaces and interfaces. */
export function canRunPods(): boolean {
  try {
    execFileSync('unshare', ['--net', '--mount', 'ip', 'link', 'add', 'test', 'type', 'bridge'], {
      stdio: 'ignore',
    })
    return true
  } catch {
    return false
  }
}
