import { X509Certificate } from 'node:crypto'
import { AsnConvert } from '@peculiar/asn1-schema'
import {
  Certificate,
  type Extension,
  type GeneralName,
  id_ce_subjectAltName,
  SubjectAlternativeName,
} from '@peculiar/asn1-x509'

/** Names of the kinds that certificates of the network carry. */
export const altNamesIn = (extensions: readonly Extension[]): GeneralName[] =>
  extensions
    .filter(({ extnID }) => extnID === id_ce_subjectAltName)
    .flatMap(({ extnValue }) => [...AsnConvert.parse(extnValue.buffer, SubjectAlternativeName)])
    .filter(isCarried)

export function altNamesOfCertificate(pem: string): GeneralName[] {
  const { tbsCertificate } = AsnConvert.parse(new X509Certificate(pem).raw, Certificate)
  return altNamesIn(tbsCertificate.extensions ?? [])
}

const isCarried = (name: GeneralName): boolean =>
  [name.dNSName, name.rfc822Name, name.iPAddress, name.uniformResourceIdentifier].some(
    (value) => value !== undefined,
  )
