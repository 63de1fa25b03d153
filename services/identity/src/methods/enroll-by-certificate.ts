import type { X509Certificate } from 'node:crypto'
import { authenticator, claimOf, identity } from '@overlay/model'
import type { ChangeLog, RowChange } from '@overlay/platform/change-log'
import { changeOf, createdValues, insertSql, newId, rowOf, uniqueFault } from '@overlay/platform/kind-store'
import { onlyRow, type Tx } from '@overlay/platform/postgres'
import {
  type Context,
  Fault,
  type IdentityServiceService,
  invalid,
  type Methods,
  type Written,
} from '@overlay/rpc'
import sql from 'sql-template-tag'
import type { Authorities } from '../credentials/authorities.js'
import { certificateProof, vouchedFor } from '../credentials/certificate-proof.js'
import { claimIn, commonNameOf } from '../domain/claims.js'
import { formattedName, nextName } from '../domain/names.js'
import { insertAuthenticator } from '../store/authenticators.js'
import { bindExternalId } from '../store/external-id-authorities.js'
import type { KnownCa } from '../store/known-cas.js'

type Enroll = Methods<IdentityServiceService>['enrollByCertificate']

interface Parts {
  readonly changeLog: ChangeLog
  readonly authorities: Authorities
}

/** Who enrolls: under which name, and by what it will be known again. */
interface Newcomer {
  readonly id: string
  readonly ca: KnownCa
  readonly leaf: X509Certificate
  readonly name: string
  readonly externalId: string | undefined
}

/** An authority that allows it makes identities of those whom it has certified. */
export const certificateEnrollment = ({ changeLog, authorities }: Parts): Enroll =>
  async function enroll({ peerCertificates, name: requestedName }, context) {
    const cas = await authorities.all(context.signal)
    if (cas.length === 0) throw new Fault('ENROLLMENT_NO_VALID_CAS')
    const allowing = cas.filter(({ isAutoCaEnrollmentEnabled }) => isAutoCaEnrollmentEnabled)
    const { leaf, ca } = vouchedFor(authorities, allowing, peerCertificates)
    const claim = claimOf(ca)
    const externalId = claim && claimIn(leaf, claim)
    if (claim && externalId === undefined) throw new Fault('MISSING_CERT_CLAIM')
    const id = newId(identity.ids)
    const name = nameOf(ca, { id, requestedName: requestedName || id, commonName: commonNameOf(leaf) })
    return make(changeLog, { id, ca, leaf, name, externalId: externalId || undefined }, context)
  }

/** An index holds no longer ones. */
const longestName = 1000

function nameOf(
  ca: KnownCa,
  parts: { readonly id: string; readonly requestedName: string; readonly commonName: string },
): string {
  const { id: identityId, ...rest } = parts
  const name = formattedName(ca.identityNameFormat, { caName: ca.name, caId: ca.id, identityId, ...rest })
  if (name === '' || name.length > longestName || name.includes('\0'))
    throw invalid('name', `name must have 1 to ${longestName} characters, none of them NUL`, '')
  return name
}

const tries = 3

/** differs: whose external id is taken hears the same as whose certificate is; not a server error. */
async function make(changeLog: ChangeLog, newcomer: Newcomer, context: Context): Promise<Written> {
  const { id } = newcomer
  for (let left = tries; ; left--) {
    try {
      const { position } = await changeLog.write(context, async (tx) => ({
        result: id,
        changes: await insert(tx, newcomer, left === 1 ? ownName(newcomer) : await freeName(tx, newcomer)),
      }))
      return { id, position }
    } catch (err) {
      const conflict = uniqueFault(identity, err) ?? uniqueFault(authenticator, err)
      if (!conflict) throw err
      const isNamesake = typeof conflict.detail === 'object' && conflict.detail.field === 'name'
      if (!isNamesake || left === 1) throw new Fault('CERT_IN_USE', undefined, err)
    }
  }
}

/** Known by the external id that its certificates claim, or else by this one certificate. */
async function insert(tx: Tx, { id, ca, leaf, externalId }: Newcomer, name: string): Promise<RowChange[]> {
  const { values, tags } = createdValues(identity, {
    name,
    type: 'Default',
    isAdmin: false,
    roleAttributes: ca.identityRoles,
    externalId,
  })
  const { rows } = await tx.query(insertSql(identity, id, values, tags))
  const made = changeOf(identity, id, null, rowOf(identity, onlyRow(rows)))
  if (externalId !== undefined) {
    // the authority has gone meanwhile
    if (!(await bindExternalId(tx, id, externalId, ca.id))) throw new Fault('CERT_FAILED_VALIDATION')
    return [made]
  }
  const added = await insertAuthenticator(tx, {
    id: newId('short'),
    identityId: id,
    enrollmentId: null,
    isIssuedByNetwork: false,
    tags: {},
    ...certificateProof({ leaf, ca }),
  })
  if (!added) throw new Fault('CERT_FAILED_VALIDATION') // the authority has gone meanwhile
  return [made, added]
}

const mostTaken = 9

async function freeName(tx: Tx, newcomer: Newcomer): Promise<string> {
  let { name } = newcomer
  for (let taken = 1; taken <= mostTaken; taken++) {
    const { rows } = await tx.query(sql`select from identity where name = ${name}`)
    if (rows.length === 0) return name
    name = nextName(name, taken)
  }
  return ownName(newcomer) // differs: names do not grow with each that is taken
}

const ownName = ({ name, id }: Newcomer): string => `${name}-${id}`
