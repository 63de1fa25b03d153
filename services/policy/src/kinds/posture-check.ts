import {
  isOfEveryVariant,
  type OperatingSystem,
  type Process,
  postureCheck,
  postureCheckVariants,
  type RowOf,
  type ValuesOf,
} from '@overlay/model'
import { invalid } from '@overlay/rpc'
import { kind } from '@overlay/store/kind-store'
import { cleanHex, NO_TIMEOUT, processOf } from '../domain/posture/posture-check.js'
import { versionRange } from '../domain/posture/version-range.js'
import { dropRoles } from '../store/roles.js'

type Row = RowOf<typeof postureCheck>
type Values = ValuesOf<typeof postureCheck>

const isOfOneType = (name: string): boolean => !isOfEveryVariant(postureCheck, name)

const memberNamesOf = (typeId: string): readonly string[] =>
  Object.keys(postureCheckVariants.get(typeId)?.fields ?? {}).filter(isOfOneType)

/** The members of every type, empty. */
const noMembers = Object.fromEntries(
  Object.keys(postureCheck.fields)
    .filter(isOfOneType)
    .map((name) => [name, null]),
)

export const postureChecks = kind(postureCheck, {
  view: async (_db, rows) =>
    // wire: `roleAttributes` is an empty list, not null
    rows.map((row) => ({ version: 1, roleAttributes: row.roleAttributes ?? [], ...membersOfType(row) })),

  async writing(_tx, next, before) {
    // differs: bad input, not a server error
    if (next.roleAttributes?.includes(''))
      throw invalid('roleAttributes', 'role attributes may not be empty', '')
    // wire: an update cannot change the type, and members of other types are ignored
    const typeId = before?.typeId ?? next.typeId
    const from = before && next.typeId !== typeId ? before : next
    const names = memberNamesOf(typeId)
    const own: Partial<Values> = Object.fromEntries(
      Object.entries(from).filter(([name]) => names.includes(name)),
    )
    return { ...noMembers, typeId, ...own, ...normalized(typeId, own) }
  },

  async deleting(tx, { id }, { also }) {
    for (const change of await dropRoles(tx, 'posture-checks', [id])) also(change)
  },
})

/** The members of a type in the form in which they are stored and shown. */
function normalized(typeId: string, own: Partial<Values>): Partial<Values> {
  const { operatingSystems, macAddresses, processes, timeoutSeconds } = own
  switch (typeId) {
    case 'OS':
      return { operatingSystems: systemsOf(operatingSystems ?? []) }
    case 'MAC':
      return { macAddresses: (macAddresses ?? []).map(cleanHex) }
    case 'PROCESS':
      return {
        'process.hashes': own['process.hashes']?.map(lower) ?? null,
        'process.signerFingerprint': lower(own['process.signerFingerprint'] ?? ''),
      }
    case 'PROCESS_MULTI':
      return { processes: processesOf(processes ?? []) }
    case 'MFA':
      return {
        timeoutSeconds: timeoutSeconds && timeoutSeconds > 0 ? timeoutSeconds : NO_TIMEOUT,
        promptOnWake: own.promptOnWake ?? false,
        promptOnUnlock: own.promptOnUnlock ?? false,
        ignoreLegacyEndpoints: own.ignoreLegacyEndpoints ?? false,
      }
    default:
      return {}
  }
}

const lower = (text: string): string => text.toLowerCase()

/** wire: of several entries for one system the last is stored; entries are sorted by name. */
function systemsOf(systems: readonly OperatingSystem[]): OperatingSystem[] {
  // differs: bad input, not a server error
  for (const [i, { versions }] of systems.entries())
    for (const [j, version] of (versions ?? []).entries())
      if (!versionRange(version))
        throw invalid(`operatingSystems.${i}.versions.${j}`, 'is no range of versions', version)
  return sortedBy(systems, ({ type }) => type).map(({ type, versions }) => ({
    type,
    versions: versions?.length ? versions : null,
  }))
}

/** wire: the last entry of each system and path, in this order. Unlike those of one process, the words stay as written. */
const processesOf = (processes: NonNullable<Row['processes']>): NonNullable<Row['processes']> =>
  sortedBy(processes, ({ osType, path }) => `${osType}-${path}`).map(
    ({ osType, path, hashes = [], signerFingerprints = [] }) => ({
      osType,
      path,
      hashes,
      signerFingerprints,
    }),
  )

const sortedBy = <T>(items: readonly T[], keyOf: (item: T) => string): T[] =>
  [...new Map(items.map((item) => [keyOf(item), item])).entries()]
    .sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
    .map(([, item]) => item)

/** Members of the row's type are set. */
type StoredRow = { readonly [M in keyof Row]: NonNullable<Row[M]> } & {
  readonly processes: readonly Required<Process>[]
}

/** The members of the row's type in wire shape. wire: members of MFA that are false are absent. */
function membersOfType(row: Row) {
  const members = row as StoredRow
  const { operatingSystems, domains, macAddresses, semantic, processes } = members
  switch (row.typeId) {
    case 'OS':
      return { operatingSystems }
    case 'DOMAIN':
      return { domains }
    case 'MAC':
      return { macAddresses }
    case 'PROCESS':
      return {
        process: {
          ...processOf(row),
          osType: members['process.osType'],
          path: members['process.path'],
        },
      }
    case 'PROCESS_MULTI':
      return { semantic, processes }
    default:
      return {
        timeoutSeconds: members.timeoutSeconds,
        ...(row.promptOnWake && { promptOnWake: true }),
        ...(row.promptOnUnlock && { promptOnUnlock: true }),
        ...(row.ignoreLegacyEndpoints && { ignoreLegacyEndpoints: true }),
      }
  }
}
