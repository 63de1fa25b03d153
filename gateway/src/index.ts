export { gatewaySettings } from './settings.js'
