export * from './issuer.js'
export * from './token-keys.js'
