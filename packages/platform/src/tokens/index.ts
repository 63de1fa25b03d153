export * from './token-keys.js'
