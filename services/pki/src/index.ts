export { type InitOptions, initPki } from './init.js'
