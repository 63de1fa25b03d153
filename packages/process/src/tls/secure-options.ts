import { constants } from 'node:crypto'

/** differs: forward secrecy and authenticated encryption only. The first three are of TLS 1.3. */
const ciphers = [
  'TLS_AES_128_GCM_SHA256',
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
].join(':')

/** TLS options of all servers. */
export const secureOptions = {
  minVersion: 'TLSv1.2',
  ciphers,
  // a resumed TLS session has only the leaf of the client, not its intermediates
  secureOptions: constants.SSL_OP_NO_TICKET,
} as const
