import { readdir, readFile, readlink } from 'node:fs/promises'

/** A socket at which a process accepts connections or datagrams. */
export interface Listener {
  readonly pid: number
  /** `tcp 127.0.0.1:1280`, `udp …` or `unix /path`. */
  readonly socket: string
}

/** All listening sockets of a process and its descendants, as Linux lists them. */
export async function listenersOf(root: number): Promise<Listener[]> {
  const pids = await treeOf(root)
  const owners = new Map<string, number>() // by inode; children may inherit a socket: the first one counts
  for (const pid of pids)
    for (const inode of await socketsOf(pid)) if (!owners.has(inode)) owners.set(inode, pid)
  const net = (name: string): Promise<string[][]> =>
    readFile(`/proc/${root}/net/${name}`, 'utf8').then(
      (text) =>
        text
          .trim()
          .split('\n')
          .slice(1)
          .map((line) => line.trim().split(/\s+/)),
      () => [], // without IPv6
    )
  const ip = async (protocol: 'tcp' | 'udp', state: string): Promise<(readonly [string, string])[]> => {
    const rows = [...(await net(protocol)), ...(await net(`${protocol}6`))]
    return rows.flatMap(([, local = '', , actual, , , , , , inode = '']) =>
      actual === state ? [[inode, `${protocol} ${addressOf(local)}`] as const] : [],
    )
  }
  const unix = (await net('unix')).flatMap(([, , , flags = '', , , inode = '', path = '(unnamed)']) =>
    Number.parseInt(flags, 16) & ACCEPTS ? [[inode, `unix ${path}`] as const] : [],
  )
  return [...(await ip('tcp', LISTENS)), ...(await ip('udp', UNCONNECTED)), ...unix].flatMap(
    ([inode, socket]) => {
      const pid = owners.get(inode)
      return pid === undefined ? [] : [{ pid, socket }]
    },
  )
}

const LISTENS = '0A'
const UNCONNECTED = '07'
const ACCEPTS = 0x10000

export async function treeOf(root: number): Promise<number[]> {
  const tree = [root]
  for (const pid of tree)
    for (const task of await readdir(`/proc/${pid}/task`).catch(() => [])) {
      const children = await readFile(`/proc/${pid}/task/${task}/children`, 'utf8').catch(() => '')
      tree.push(...children.split(' ').filter(Boolean).map(Number))
    }
  return tree
}

/** The environment with which a process was started. */
export async function environmentOf(pid: number): Promise<Readonly<Record<string, string>>> {
  const text = await readFile(`/proc/${pid}/environ`, 'utf8')
  return Object.fromEntries(
    text.split('\0').map((pair) => [pair.split('=', 1)[0], pair.replace(/^[^=]*=/, '')]),
  )
}

async function socketsOf(pid: number): Promise<string[]> {
  const fds = await readdir(`/proc/${pid}/fd`)
  const links = await Promise.all(fds.map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => '')))
  return links.flatMap((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? [])
}

/** `0100007F:0500` is 127.0.0.1:1280: four bytes each in the order of the machine. */
function addressOf(hex: string): string {
  const [host = '', port = ''] = hex.split(':')
  const words = host.match(/.{8}/g) ?? []
  const bytes = words.flatMap((word) => [...Buffer.from(word, 'hex').reverse()])
  const shown =
    bytes.length === 4 ? bytes.join('.') : bytes.every((byte) => byte === 0) ? '[::]' : `[${bytes.join(',')}]`
  return `${shown}:${Number.parseInt(port, 16)}`
}
