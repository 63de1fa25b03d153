import { type KeyObject, sign } from 'node:crypto'

/** A request or a certificate: what is signed, the algorithm and the signature. */
export interface Signed {
  readonly der: Buffer
  readonly key: KeyObject
  /** Of the signature. null: the algorithm implies it. */
  readonly digest: string | null
}

export interface HostileDer {
  readonly what: string
  readonly der: Buffer
  /** Whether the signature fits: all that is wrong is in what is signed. */
  readonly isSigned: boolean
  /** A reader of strict DER refuses it, whether or not the signature fits. */
  readonly isMalformed: boolean
}

/** The same seed gives the same bytes, except for signatures. */
export function hostileVariants(sample: Signed, count: number, seed: number): readonly HostileDer[] {
  const below = randomBelow(seed)
  return Array.from({ length: count }, (_, i) => variantOf(sample, i, below))
}

type Below = (limit: number) => number

function variantOf(sample: Signed, turn: number, below: Below): HostileDer {
  const { der } = sample
  const mutations = [...byteMutations, ...treeMutations]
  const mutation = mutations[turn % mutations.length] ?? truncated
  if (!('change' in mutation))
    return { what: mutation.what, der: mutation.of(der, below), isSigned: false, isMalformed: false }
  const { what, isMalformed, change } = mutation
  const [info = leaf(5), algorithm = leaf(5), signature = leaf(5)] = treeOf(der).parts ?? []
  change(info, below)
  const changed = encodeTree(info)
  const isSigned = below(2) === 0
  const value = isSigned
    ? encodeTree({ ...signature, content: Buffer.concat([Buffer.of(0), signatureOf(sample, changed)]) })
    : encodeTree(signature)
  const parts = Buffer.concat([changed, encodeTree(algorithm), value])
  return { what, der: Buffer.concat([header(0x30, parts.length), parts]), isSigned, isMalformed }
}

const signatureOf = ({ key, digest }: Signed, bytes: Buffer): Buffer => sign(digest, bytes, key)

interface ByteMutation {
  readonly what: string
  readonly of: (der: Buffer, below: Below) => Buffer
}

const truncated: ByteMutation = {
  what: 'truncated',
  of: (der, below) => der.subarray(0, below(der.length - 1) + 1),
}

const byteMutations: readonly ByteMutation[] = [
  truncated,
  {
    what: 'one byte changed',
    of: (der, below) => {
      const bytes = Buffer.from(der)
      const at = below(bytes.length)
      bytes[at] = (bytes[at] ?? 0) ^ (below(255) + 1)
      return bytes
    },
  },
  { what: 'bytes behind it', of: (der, below) => Buffer.concat([der, Buffer.alloc(below(100) + 1, 5)]) },
  {
    what: 'wrong tag',
    of: (der, below) => {
      const root = treeOf(der)
      const node = pick(nodesOf(root), below)
      node.tag ^= below(255) + 1
      return encodeTree(root)
    },
  },
  {
    what: 'random bytes',
    of: (_, below) => Buffer.from(Array.from({ length: below(400) }, () => below(256))),
  },
]

interface TreeMutation {
  readonly what: string
  readonly isMalformed: boolean
  readonly change: (info: Tree, below: Below) => void
}

const treeMutations: readonly TreeMutation[] = [
  {
    what: 'nested',
    isMalformed: true,
    change: (info, below) => replace(pick(nodesOf(info), below), nested(40 + below(3000))),
  },
  {
    what: 'huge',
    isMalformed: true,
    change: (info, below) =>
      replace(pick(nodesOf(info), below), leaf(4, Buffer.alloc(33_000 + below(9_000)))),
  },
  {
    what: 'indefinite length',
    isMalformed: true,
    change: (info, below) => {
      pick(
        nodesOf(info).filter(({ parts }) => parts),
        below,
      ).isIndefinite = true
    },
  },
  {
    what: 'length in long form',
    isMalformed: true,
    change: (info, below) => {
      pick(nodesOf(info), below).lengthBytes = 3 + below(3)
    },
  },
  {
    what: 'extension twice',
    isMalformed: true,
    change: (info, below) => {
      const lists = nodesOf(info).filter(isExtensionList)
      const { parts = [] } = pick(lists, below)
      parts.push(pick(parts, below))
    },
  },
  {
    what: 'absurd date',
    isMalformed: false,
    change: (info, below) => {
      const dates = nodesOf(info).filter(({ tag }) => tag === 0x17 || tag === 0x18)
      const date = leaf(0x17 + below(2), Buffer.from(pick(absurdDates, below)))
      replace(pick(dates.length > 0 ? dates : nodesOf(info), below), date)
    },
  },
  {
    what: 'part left out',
    isMalformed: false,
    change: (info, below) => {
      const { parts = [] } = pick(
        nodesOf(info).filter(({ parts }) => parts?.length),
        below,
      )
      parts.splice(below(parts.length), 1)
    },
  },
  {
    what: 'part twice',
    isMalformed: false,
    change: (info, below) => {
      const { parts = [] } = pick(
        nodesOf(info).filter(({ parts }) => parts?.length),
        below,
      )
      parts.push(pick(parts, below))
    },
  },
  {
    what: 'no content',
    isMalformed: false,
    change: (info, below) => replace(pick(nodesOf(info), below), leaf(below(32))),
  },
]

const absurdDates = [
  '',
  '000000000000Z',
  '991399999999Z',
  '-10101000000Z',
  '99999999999999Z',
  'now',
  '261231235959+9999',
]

/** An element that can be changed. */
interface Tree {
  tag: number
  content: Buffer
  parts: Tree[] | undefined
  isIndefinite?: boolean
  lengthBytes?: number
}

const leaf = (tag: number, content: Buffer = Buffer.alloc(0)): Tree => ({ tag, content, parts: undefined })

function nested(depth: number): Tree {
  let content: Buffer = Buffer.alloc(0)
  for (let left = depth; left > 0; left--) content = Buffer.concat([header(0x30, content.length), content])
  return leaf(0x30, content)
}

const replace = (node: Tree, by: Tree): void => void Object.assign(node, by)

/** A list of pairs of an object id and more, of which an octet string is the last. */
const isExtensionList = ({ parts }: Tree): boolean =>
  parts !== undefined &&
  parts.length > 0 &&
  parts.every((part) => part.parts?.[0]?.tag === 0x06 && part.parts.at(-1)?.tag === 0x04)

function treeOf(der: Buffer): Tree {
  const [tree = leaf(5)] = treesIn(der)
  return tree
}

function treesIn(der: Buffer): Tree[] {
  const trees: Tree[] = []
  for (let at = 0; at < der.length; ) {
    const [tag = 0, first = 0] = der.subarray(at)
    const lengthBytes = first < 0x80 ? 0 : first & 0x7f
    const start = at + 2 + lengthBytes
    const length = lengthBytes === 0 ? first : der.readUIntBE(at + 2, lengthBytes)
    const content = der.subarray(start, start + length)
    trees.push({ tag, content, parts: (tag & 0x20) === 0 ? undefined : treesIn(content) })
    at = start + length
  }
  return trees
}

const nodesOf = (tree: Tree): Tree[] => [tree, ...(tree.parts ?? []).flatMap(nodesOf)]

function encodeTree({ tag, content, parts, isIndefinite, lengthBytes }: Tree): Buffer {
  const body = parts ? Buffer.concat(parts.map(encodeTree)) : content
  if (isIndefinite) return Buffer.concat([Buffer.of(tag, 0x80), body, Buffer.of(0, 0)])
  return Buffer.concat([header(tag, body.length, lengthBytes), body])
}

/** `lengthBytes`: more than the length needs. */
function header(tag: number, length: number, lengthBytes?: number): Buffer {
  if (length < 0x80 && lengthBytes === undefined) return Buffer.of(tag, length)
  const least = length < 0x100 ? 1 : length < 0x1_00_00 ? 2 : 3
  const digits = Buffer.alloc(lengthBytes ?? least)
  digits.writeUIntBE(length, digits.length - least, least)
  return Buffer.concat([Buffer.of(tag, 0x80 | digits.length), digits])
}

function pick<T>(from: readonly T[], below: Below): T {
  const one = from[below(from.length)]
  if (one === undefined) throw new Error('nothing to choose from')
  return one
}

/** mulberry32 */
function randomBelow(seed: number): Below {
  let state = seed
  return (limit) => {
    state = (state + 0x6d2b79f5) | 0
    let value = Math.imul(state ^ (state >>> 15), state | 1)
    value = (value + Math.imul(value ^ (value >>> 7), value | 61)) ^ value
    return ((value ^ (value >>> 14)) >>> 0) % limit
  }
}
