// Modules that the first page does not need, loaded right after it.
import '../more.css'

export { whenBack } from './back'
export { bind } from './keys'
export { default as Help } from '../parts/Help.svelte'
export { default as Messages } from '../parts/Messages.svelte'
