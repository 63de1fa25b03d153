import { isIP } from 'node:net'
import { AsnConvert } from '@peculiar/asn1-schema'
import {
  type GeneralName,
  id_ce_subjectAltName,
  type Name,
  SubjectAlternativeName,
} from '@peculiar/asn1-x509'
import { forYears, type Holder, publicKeyOf, type Signer, selfSigner, sign, type Validity } from './signer.js'
import * as x509 from './x509.js'

const { KeyUsageFlags: usage, ExtendedKeyUsage: purpose } = x509

interface CaRequest {
  readonly privateKey: string
  readonly commonName: string
  /** Stands in its names, where SPIFFE looks for it. */
  readonly trustDomain: string
  readonly now: Date
  readonly signer?: Signer // none: it signs itself
}

export async function issueCa({
  privateKey,
  commonName,
  trustDomain,
  now,
  signer,
}: CaRequest): Promise<Holder> {
  const subject = new x509.Name([{ O: ['overlay'] }, { CN: [commonName] }])
  const publicKey = publicKeyOf(privateKey)
  const pem = await sign(signer ?? (await selfSigner(subject, privateKey)), {
    subject,
    publicKey,
    validity: forYears(10, now),
    extensions: [
      new x509.BasicConstraintsExtension(true, signer ? 1 : undefined, true),
      new x509.KeyUsagesExtension(usage.digitalSignature | usage.keyCertSign | usage.cRLSign, true),
      new x509.SubjectAlternativeNameExtension([{ type: 'url', value: `spiffe://${trustDomain}` }]),
      await x509.SubjectKeyIdentifierExtension.create(publicKey),
    ],
  })
  return { pem, privateKey }
}

interface ServerRequest {
  readonly privateKey: string
  readonly hosts: readonly string[]
  readonly now: Date
}

/** What gateways serve TLS with. Both purposes, because stacks differ in which one they ask for. */
export async function issueServer(
  signer: Signer,
  { privateKey, hosts, now }: ServerRequest,
): Promise<Holder> {
  const publicKey = publicKeyOf(privateKey)
  const pem = await sign(signer, {
    subject: new x509.Name([{ O: ['overlay'] }, { CN: ['overlay server'] }]),
    publicKey,
    validity: forYears(1, now),
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(usage.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([purpose.serverAuth, purpose.clientAuth]),
      new x509.SubjectAlternativeNameExtension(
        hosts.map((value) => ({ type: isIP(value) ? ('ip' as const) : ('dns' as const), value })),
      ),
      await x509.SubjectKeyIdentifierExtension.create(publicKey),
    ],
  })
  return { pem, privateKey }
}

export interface LeafRequest {
  readonly subject: Name
  /** DER of the SubjectPublicKeyInfo. */
  readonly publicKey: Buffer
  readonly role: 'client' | 'server'
  readonly altNames: readonly GeneralName[]
  readonly validity: Validity
}

/** The profile of all that identities and routers get. */
export function issueLeaf(
  signer: Signer,
  { subject, publicKey, role, altNames, validity }: LeafRequest,
): Promise<string> {
  return sign(signer, {
    subject: new x509.Name(AsnConvert.serialize(subject)), // differs: the request's own order and string types
    publicKey,
    validity,
    extensions: [
      new x509.KeyUsagesExtension(
        usage.digitalSignature | usage.keyEncipherment | usage.dataEncipherment,
        true,
      ),
      new x509.ExtendedKeyUsageExtension([role === 'client' ? purpose.clientAuth : purpose.serverAuth]),
      ...(altNames.length > 0 ? [namesExtension(altNames, subject.length === 0)] : []),
    ],
  })
}

const namesExtension = (names: readonly GeneralName[], critical: boolean): x509.Extension =>
  new x509.Extension(
    id_ce_subjectAltName,
    critical,
    AsnConvert.serialize(new SubjectAlternativeName([...names])),
  )
