import {
  encodeBool,
  encodeText,
  encodeVersion,
  groupedHeader,
  type Headers,
  headerKey,
  type LinkListener,
  LinkListeners,
  RouterCapability,
  RouterMetadata,
  type Version,
} from '@overlay/channel'

/** The release lines of routers that test routers can be. */
export type Line = '1.1' | '1.6' | '2.0'

const versions: Readonly<Record<Line, string>> = { '1.1': 'v1.1.13', '1.6': 'v1.6.20', '2.0': 'v2.0.3' }

/** The program that a test router claims to be. */
export const versionOf = (line: Line): Version => ({
  version: versions[line],
  revision: 'unknown',
  buildDate: '2025-01-01T00:00:00Z',
  os: 'linux',
  arch: 'amd64',
})

/** Bits of the capabilities of a controller. */
export const controllerBit = { routerDataModel: 4, signedSessions: 6 } as const

/** Header keys and types of the data model. */
export const modelHeader = { supportsIndex: 1024, index: 1025, subscriptionId: 1026 } as const
export const modelType = {
  state: 20500,
  changeSet: 20501,
  validate: 20503,
  validated: 20504,
  subscribe: 20505,
} as const

/** Keys of the peer data by which routers of the 2.0 line name the dialer. */
export const dialerPeerData = { identityId: 1115, identityName: 1116 } as const

/** What a router of the 2.0 line keeps of its connection to a controller until the process ends. */
export interface Group {
  secret?: Buffer
  /** Of the first connection. */
  connectionId?: string
  losses: number
}

/** Headers of the hello. */
export function helloOf(line: Line, group: Group, linkListeners?: readonly LinkListener[]): Headers {
  const listeners =
    linkListeners && Buffer.from(LinkListeners.encode({ listeners: [...linkListeners] }).finish())
  const version = [headerKey.version, encodeVersion(versionOf(line))] as const
  if (line !== '2.0')
    return new Map([
      version,
      [headerKey.routerMetadata, metadata],
      ...(listeners ? [[headerKey.listeners, listeners] as const] : []),
    ])
  const { secret, connectionId, losses } = group
  return new Map([
    version,
    [headerKey.type, encodeText('ctrl.default')],
    [groupedHeader.isGrouped, encodeBool(true)],
    [groupedHeader.isFirst, encodeBool(true)],
    [groupedHeader.capabilities, Buffer.of(2)],
    ...(listeners ? [[groupedHeader.listeners, listeners] as const] : []),
    ...(secret ? [[groupedHeader.secret, secret] as const] : []),
    ...(connectionId ? [[headerKey.connectionId, encodeText(`${connectionId}-${losses}`)] as const] : []),
  ])
}

const metadata = Buffer.from(
  RouterMetadata.encode({ capabilities: [RouterCapability.LINK_MANAGEMENT] }).finish(),
)

/**
 * Checks the answer to the hello as routers of the line do, and notes what the next hello needs. Throws if they would
 * refuse the controller. Returns its capabilities.
 */
export function checkAnswer(line: Line, group: Group, answer: Headers): bigint {
  const bits =
    (line === '2.0' && answer.get(groupedHeader.capabilities)) || answer.get(headerKey.capabilities)
  const capabilities = bits?.length ? BigInt(`0x${bits.toString('hex')}`) : 0n
  if (line !== '2.0') return capabilities
  const secret = answer.get(groupedHeader.secret)
  if (!secret?.length) throw new Error('no group secret in the answer')
  if (group.secret && !group.secret.equals(secret)) throw new Error('another group secret in the answer')
  if (!hasBit(capabilities, controllerBit.signedSessions))
    throw new Error('the controller does not support signed sessions')
  group.secret = Buffer.from(secret)
  group.connectionId ??= answer.get(headerKey.connectionId)?.toString() ?? ''
  return capabilities
}

export const hasBit = (capabilities: bigint, bit: number): boolean =>
  (capabilities >> BigInt(bit)) % 2n === 1n
