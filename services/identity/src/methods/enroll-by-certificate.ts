import type { X509Certificate } from 'node:crypto'
import { authenticator, claimOf, identity } from '@overlay/model'
import {
  type Context,
  Fault,
  fieldOf,
  type IdentityServiceService,
  invalid,
  type Methods,
  type Written,
} from '@overlay/rpc'
import type { ChangeLog, RowChange } from '@overlay/store/change-log'
import { createdValues, insertRow, newId, uniqueFault } from '@overlay/store/kind-store'
import type { Tx } from '@overlay/store/postgres'
import { fingerprintOf } from '@overlay/x509'
import { certificatesOf } from '../credentials/certificates.js'
import { certificateProof, enrollingCertificate } from '../credentials/proof.js'
import { claimIn, commonNameOf } from '../domain/claims.js'
import { subjectTextOf } from '../domain/leaf.js'
import { formattedName, nextName } from '../domain/names.js'
import { NAME_CHARACTERS, NAMING_TRIES, TAKEN_NAMES } from '../limits.js'
import { insertAuthenticator } from '../store/authenticators.js'
import type { CaCopy } from '../store/cas.js'
import { isNameTaken, shareNames } from '../store/router-identities.js'
import { bindExternalId } from '../store/subjects.js'
import type { MethodDeps } from './method-deps.js'

/** The identity to create. With an external id its certificates are recognized by that, else by the one certificate. */
interface NewIdentity {
  readonly id: string
  readonly ca: CaCopy
  readonly leaf: X509Certificate
  readonly name: string
  readonly externalId: string | undefined
}

type Enroll = Methods<IdentityServiceService>['enrollByCertificate']

/** Creates an identity for a certificate of an authority that allows it. */
export const enrollByCertificate = (deps: MethodDeps): Enroll => {
  const enroll = enrollment(deps)
  return async (request, context) => {
    try {
      return await enroll(request, context)
    } catch (err) {
      if (err instanceof Fault) {
        const [leaf] = certificatesOf(request.peerCertificates.slice(0, 1))
        const proof = leaf && { fingerprint: fingerprintOf(leaf), subject: subjectTextOf(leaf) }
        deps.noteEnrollmentRefusal(context, { method: 'ca', reason: err.code, ...proof })
      }
      throw err
    }
  }
}

const enrollment =
  ({ changeLog, authorities }: MethodDeps): Enroll =>
  async ({ peerCertificates, name: requestedName }, context) => {
    const cas = await authorities.all(context.signal)
    if (cas.length === 0) throw new Fault('ENROLLMENT_NO_VALID_CAS')
    const allowing = cas.filter(({ isAutoCaEnrollmentEnabled }) => isAutoCaEnrollmentEnabled)
    const { leaf, ca } = await enrollingCertificate(authorities, allowing, peerCertificates, context)
    const claim = claimOf(ca)
    const externalId = claim && claimIn(leaf, claim)
    if (claim && externalId === undefined) throw new Fault('MISSING_CERT_CLAIM')
    const id = newId(identity.ids)
    const name = nameOf(ca, { id, requestedName: requestedName || id, commonName: commonNameOf(leaf) })
    return create(changeLog, { id, ca, leaf, name, externalId: externalId || undefined }, context)
  }

function nameOf(
  ca: CaCopy,
  parts: { readonly id: string; readonly requestedName: string; readonly commonName: string },
): string {
  const { id: identityId, ...rest } = parts
  const name = formattedName(ca.identityNameFormat, { caName: ca.name, caId: ca.id, identityId, ...rest })
  if (name === '' || name.length > NAME_CHARACTERS || name.includes('\0'))
    throw invalid('name', `name must have 1 to ${NAME_CHARACTERS} characters, none of them NUL`, '')
  return name
}

/** differs: an external id that is in use is refused like a certificate that is; not a server error. */
async function create(changeLog: ChangeLog, row: NewIdentity, context: Context): Promise<Written> {
  const { id } = row
  for (let left = NAMING_TRIES; ; left--) {
    try {
      const { position } = await changeLog.write(context, async (tx) => ({
        result: id,
        changes: await insert(tx, row, left === 1 ? uniqueName(row) : await freeName(tx, row)),
      }))
      return { id, position }
    } catch (err) {
      const conflict = uniqueFault(identity, err) ?? uniqueFault(authenticator, err)
      if (!conflict) throw err
      if (fieldOf(conflict) !== 'name' || left === 1) throw new Fault('CERT_IN_USE', undefined, err)
    }
  }
}

async function insert(tx: Tx, { id, ca, leaf, externalId }: NewIdentity, name: string): Promise<RowChange[]> {
  const { values, tags } = createdValues(identity, {
    name,
    type: 'Default',
    isAdmin: false,
    roleAttributes: ca.identityRoles,
    externalId,
  })
  const inserted = await insertRow(tx, identity, id, values, tags)
  if (externalId !== undefined) {
    if (!(await bindExternalId(tx, id, externalId, ca.id))) throw authorityDeleted()
    return [inserted]
  }
  const proof = await insertAuthenticator(tx, {
    id: newId('short'),
    identityId: id,
    enrollmentId: null,
    isIssuedByNetwork: false,
    tags: {},
    ...certificateProof({ leaf, ca }),
  })
  if (!proof) throw authorityDeleted()
  return [inserted, proof]
}

const authorityDeleted = (): Fault => new Fault('CERT_FAILED_VALIDATION')

async function freeName(tx: Tx, row: NewIdentity): Promise<string> {
  await shareNames(tx)
  let { name } = row
  for (let taken = 1; taken <= TAKEN_NAMES; taken++) {
    if (!(await isNameTaken(tx, name))) return name
    name = nextName(name, taken)
  }
  return uniqueName(row) // differs: names do not grow with each one that is taken
}

const uniqueName = ({ name, id }: NewIdentity): string => `${name}-${id}`
