export * from './certificate.js'
export * from './der.js'
export * from './keys.js'
export * from './pem.js'
