import { X509Certificate } from 'node:crypto'
import type { Methods, PkiServiceService } from '@overlay/rpc'
import { callContext } from '../http/calls.js'
import type { Handlers } from './operations.js'

const FRESH_MS = 10_000
const headers = { 'content-type': 'application/pkcs7-mime', 'content-transfer-encoding': 'base64' }

/** What clients should trust, as EST has it. */
export function caCertificates(pki: Pick<Methods<PkiServiceService>, 'getTrustBundle'>): Handlers {
  let kept: { readonly text: string; readonly untilMs: number } | undefined

  return {
    'GET /.well-known/est/cacerts': {
      produces: [headers['content-type']],
      handle: async (c) => {
        if (!kept || kept.untilMs < Date.now()) {
          try {
            const { pems } = await pki.getTrustBundle({}, callContext(c))
            kept = { text: linesOf(certificateBag(pems)), untilMs: Date.now() + FRESH_MS }
          } catch (err) {
            if (!kept) throw err // else the last one will do: certificates outlive an outage
          }
        }
        return new Response(kept.text, { status: 200, headers })
      },
    },
  }
}

/** wire: lines of 64 characters, none at the end. */
const linesOf = (der: Buffer): string => der.toString('base64').replace(/.{64}(?=.)/g, '$&\n')

const SIGNED_DATA = Buffer.from('2a864886f70d010702', 'hex') // 1.2.840.113549.1.7.2
const DATA = Buffer.from('2a864886f70d010701', 'hex') // 1.2.840.113549.1.7.1

/** PKCS#7 signed data in which nothing is signed: only certificates. */
export function certificateBag(pems: readonly string[]): Buffer {
  const certificates = pems.map((pem) => new X509Certificate(pem).raw)
  const signed = tlv(
    0x30,
    tlv(0x02, Buffer.of(1)),
    tlv(0x31),
    tlv(0x30, tlv(0x06, DATA)),
    tlv(0xa0, ...certificates),
    tlv(0xa1), // revocation lists: none
    tlv(0x31),
  )
  return tlv(0x30, tlv(0x06, SIGNED_DATA), tlv(0xa0, signed))
}

function tlv(tag: number, ...parts: readonly Buffer[]): Buffer {
  const length = parts.reduce((sum, part) => sum + part.length, 0)
  return Buffer.concat([Buffer.of(tag), lengthOf(length), ...parts])
}

function lengthOf(length: number): Buffer {
  if (length < 0x80) return Buffer.of(length)
  const hex = length.toString(16)
  const bytes = Buffer.from(hex.length % 2 ? `0${hex}` : hex, 'hex')
  return Buffer.concat([Buffer.of(0x80 | bytes.length), bytes])
}
