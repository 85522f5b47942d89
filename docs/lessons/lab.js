// <meta name="generator" content="informerstack lab export">
// SPDX-License-Identifier: Apache-2.0
"use strict";

const modules = {};

modules["vendor/preact.mjs"] = (() => {
var n,t,r,u,i,f,o,e,l,c,a,s,h=Symbol.for("pv"),p={},y=[],v=/^m(i|n|o|s|text|space)$/,w=Array.isArray,d=y.slice,_=Object.assign;function g(n){n&&n.parentNode&&n.remove()}function k(n,t,r){var u,i,f,o={},e=arguments.length;for(f in t)"key"==f?u=t[f]:"ref"==f&&"function"!=typeof n?i=t[f]:o[f]=t[f];return e>2&&(o.children=e>3?d.call(arguments,2):r),m(n,o,u,i,null)}function b(n,t,r){var u,i,f,o=_({},n.props),e=arguments.length;for(f in t)"key"==f?u=t[f]:"ref"==f&&"function"!=typeof n.type?i=t[f]:o[f]=t[f];return e>2&&(o.children=e>3?d.call(arguments,2):r),m(n.type,o,void 0!==u?u:n.key,void 0!==i?i:n.ref,null)}function m(r,u,i,f,o){var e={type:r,props:u,key:i,ref:f,__k:null,__:null,__b:0,__e:null,__c:null,constructor:h,__v:o||++t,__i:-1,__u:0};return!o&&n.vnode&&n.vnode(e),e}function M(){return{current:null}}function $(n){return n.children}function x(n,t){this.props=n,this.context=t,this.__g=0}function S(n,t){if(null==t)return n.__&&S(n.__,n.__i+1);for(var r;t<n.__k.length;t++)if((r=n.__k[t])&&r.__e)return r.__e;return"function"!=typeof n.type||n.props.__P?null:S(n)}function C(t){var r,u=t.__v,i=u.__e,f=[],o=[],e=t.__P;e&&((r=_({constructor:h},u)).__v=u.__v+1,n.vnode&&n.vnode(r),z(e,r,u,t.__n,e.namespaceURI,32&u.__u?[i]:null,f,i||S(u),32&u.__u,o),r.__v=u.__v,r.__.__k[r.__i]=r,E(f,r,o),u.__=u.__e=null,r.__e!=i&&j(r))}function j(n){if((n=n.__)&&n.__c&&!n.props.__P)return n.__e=null,n.__k.some(function(t){return t&&(n.__e=t.__e)}),j(n)}function L(t){(8&t.__g||(t.__g|=8,u.push(t),f++))&&i==n.debounceRendering||((i=n.debounceRendering)||queueMicrotask)(H)}function H(){try{for(var n,t=1;u.length;)u.length>t&&u.sort(o),n=u.shift(),t=u.length,8&n.__g&&C(n)}finally{(f=u.length)&&(i||queueMicrotask)(H)}}function I(n,t,r,u,i,f,o,e,l,c,a){var s,h,v,w,d,_,g=u.__k||y,k=t.length;for(l=q(r,t,g,l,k),s=0;s<k;s++)null!=(v=r.__k[s])&&(h=~v.__i&&g[v.__i]||p,v.__i=s,_=z(n,v,h,i,f,o,e,l,c,a),w=v.__e,(h.ref!=v.ref||8&h.__u)&&(h.ref&&G(h.ref,null,v,h),v.ref&&a.push(v.ref,v.__c||w,v)),d=d||w,4&v.__u?(l=A(v,l,n,!h.__v),h.__e&&(h.__e=null)):"function"==typeof v.type&&void 0!==_?l=_:w&&(l=w.nextSibling),v.__u&=-21);return r.__e=d,l}function q(n,t,r,u,i){var f,o,e,l,c,a,s,p,y,v=r.length,d=v,_=0,g=0,k=n.__k=Array(i);for(f=0;f<i;f++)null!=(o=t[f])&&"boolean"!=typeof o&&"function"!=typeof o?("object"!=typeof o||o.constructor===String?o=k[f]=m(null,o):w(o)?o=k[f]=m($,{children:o}):o.constructor===h&&o.__b?o=k[f]=m(o.type,o.props,o.key,o.ref,o.__v):k[f]=o,l=f+_,o.__=n,o.__b=n.__b+1,e=null,~(c=o.__i=P(o,r,l,d))&&(d--,(e=r[c])&&(e.__u|=2)),e&&e.__v?(o.__u|=16,c==l-1?_--:c==l+1?_++:c!=l&&(c>l?_--:_++,g=1)):(~c||(i>v?_--:i<v&&_++),"function"!=typeof o.type&&(o.__u|=4))):k[f]=null;if(g){for(a=[],s=[],f=0;f<i;f++)if((o=k[f])&&16&o.__u){for(_=0,p=a.length;_<p;)a[y=_+p>>1]<o.__i?_=y+1:p=y;a[_]=o.__i,s[f]=_+1}for(_=a.length;f--;)s[f]&&(s[f]==_?_--:k[f].__u|=4)}if(d)for(f=0;f<v;f++)!(e=r[f])||2&e.__u||(e.__e==u&&(u=S(e)),J(e,e));return u}function A(n,t,r,u){var i,f,o,e;if("function"==typeof n.type){if(n.props.__P)return t;if(i=n.__k)for(f=0;f<i.length;f++)i[f]&&(i[f].__=n,t=A(i[f],t,r,!1));return t}for(t&&!t.parentNode&&(t=S(n))&&!t.parentNode&&(t=null),o=n.__e,e=t;e&&8==e.nodeType;)e=e.nextSibling;for(o!=e&&(!u&&r.moveBefore&&o.parentNode?r.moveBefore(o,t):r.insertBefore(o,t||null)),t=o;(t=t&&t.nextSibling)&&8==t.nodeType&&!t.data.startsWith("$s"););return t}function O(n,t){return t=t||[],null!=n&&"boolean"!=typeof n&&(w(n)?n.some(function(n){O(n,t)}):t.push(n)),t}function P(n,t,r,u){var i,f=n.key,o=n.type,e=t[r],l=e&&!(2&e.__u);if(null===e&&null==f||l&&f==e.key&&o==e.type)return r;if(u>(l?1:0)){for(i=r-1;i>=0;i--)if((e=t[i])&&!(2&e.__u)&&f==e.key&&o==e.type)return i;for(i=r+1;i<t.length;i++)if((e=t[i])&&!(2&e.__u)&&f==e.key&&o==e.type)return i}return-1}function T(n,t,r){null==r&&(r=""),"-"==t[0]?n.setProperty(t,r):n[t]=r}function N(n,t,r,u,i){var f,o;if("style"==t)if("string"==typeof r)n.style.cssText=r;else{if("string"==typeof u&&(n.style.cssText=u=""),u)for(t in u)r&&t in r||T(n.style,t);if(r)for(t in r)u&&r[t]==u[t]||T(n.style,t,r[t])}else if("o"==t[0]&&"n"==t[1])"function"!=typeof r&&(r=null),"function"!=typeof u&&(u=null),(n.__e||(n.__e={}))[t]=r,r&&u||(o=a[t]||(a[t]=V(t)),(n.__a||(n.__a={}))[t]=c,f=t!=(t=t.replace(l,"$1")),(t=t.slice(2))[0]<"a"&&(t=t.toLowerCase()),r?n.addEventListener(t,o,f):n.removeEventListener(t,o,f));else{if("http://www.w3.org/2000/svg"==i)t=t.replace(/xlink(H|:h)/,"h").replace(/sName$/,"s");else if("width"!=t&&"height"!=t&&"href"!=t&&"list"!=t&&"form"!=t&&"tabIndex"!=t&&"download"!=t&&"rowSpan"!=t&&"colSpan"!=t&&"role"!=t&&"popover"!=t&&t in n)try{return void(n[t]=null==r?"":r)}catch(n){}if("function"==typeof r)return;null==r||!1===r&&"-"!=t[4]?n.removeAttribute(t):n.setAttribute(t,"popover"==t&&1==r?"":r)}}function V(t){return function(r){var u=this.__e;if(u){if(u=u[t],null==r[e])r[e]=c++;else if(r[e]<this.__a[t])return;return u(n.event?n.event(r):r)}}}function z(t,r,u,i,f,o,e,l,c,a){var s,p,v,d,k,b,m,M,C,j,L,H,q,A,O,P,T,N,V=r.type;if(r.constructor!==h)return null;128&u.__u&&(c=32&u.__u,s=u.__c.__z)&&(r.__u|=c,p=o=[],8==s.nodeType?l=B(s,o):o.push(s),l=o[0]||l),(s=n.__b)&&s(r);n:if("function"==typeof V){v=e.length;try{if(M=r.props,C=(s=V.prototype)&&s.render,j=(s=V.contextType)&&i[s.__c],L=s?j?j.props.value:s.__:i,(d=u.__c)?(r.__c=d,2&d.__g&&(d.__g|=1)):(C?r.__c=d=new V(M,L):(r.__c=d=new x(M,L),d.constructor=V,d.render=K),j&&j.sub(d),d.state||(d.state={}),d.__n=i,d.__g|=8,d.__h=[],d.__k=[]),C&&(d.__s||(d.__s=d.state),V.getDerivedStateFromProps&&(d.__s==d.state&&(d.__s=_({},d.__s)),_(d.__s,V.getDerivedStateFromProps(M,d.__s)))),k=d.props,b=d.state,d.__v=r,u.__c){if(M!==k&&C&&!V.getDerivedStateFromProps&&d.componentWillReceiveProps&&d.componentWillReceiveProps(M,L),r.__v==u.__v&&!(8&d.__g)||!(4&d.__g)&&d.shouldComponentUpdate&&!1===d.shouldComponentUpdate(M,d.__s,L)){r.__v!=u.__v&&(d.props=M,d.state=d.__s,d.__g&=-9),r.__e=u.__e,r.__k=u.__k,r.__k.some(function(n){n&&(n.__=r)}),y.push.apply(d.__h,d.__k),d.__k=[],d.__h.length&&e.push(d),l=S(u);break n}d.componentWillUpdate&&d.componentWillUpdate(M,d.__s,L),C&&d.componentDidUpdate&&d.__h.push(function(){d.componentDidUpdate(k,b,m)})}else C&&!V.getDerivedStateFromProps&&d.componentWillMount&&d.componentWillMount(),C&&d.componentDidMount&&d.__h.push(d.componentDidMount);d.context=L,d.props=M,d.__P=t,d.__g&=-5,H=n.__r,q=C?25:0;do{d.__g&=-9,H&&H(r),s=d.render(d.props,d.state=d.__s,d.context)}while(8&d.__g&&++q<25);C&&(y.push.apply(d.__h,d.__k),d.__k=[]),d.state=d.__s,d.getChildContext&&(i=_({},i,d.getChildContext())),C&&u.__c&&d.getSnapshotBeforeUpdate&&(m=d.getSnapshotBeforeUpdate(k,b)),A=s&&s.type===$&&null==s.key?s.props.children:s,M.__P&&(s=l,f=(t=M.__P).namespaceURI,c=o=null,u.props&&u.props.__P!=t&&(u.__k.some(function(n){n&&J(n,n)}),u.__k=null),l=u.__k?S(u,0):null),l=I(t,w(A)?A:[A],r,u,i,f,o,e,l,c,a),M.__P&&(r.__e=null,l=s),r.__u&=-161,p&&p.some(g),d.__h.length&&e.push(d),1&d.__g&&(d.__g&=-4)}catch(t){if(e.length=v,r.__v=null,c||o)if(t&&t.then){if(r.__u|=128|c,o){for(~(T=o.indexOf(l||void 0))||(T=o.length);(N=o[T-1])&&8==N.nodeType;)T--;for(;T<o.length;T++)if(N=o[T])if(o[T]=null,O){if(N==P)break}else{if(8!=N.nodeType)break;N.data.startsWith("$s")&&(P=B(O=N))}}if(!O){for(;l&&8==l.nodeType&&l.nextSibling;)l=l.nextSibling;O=l}(s=B(O=r.__c.__z||(r.__c.__z=O)))?(r.__e=O,l=s):r.__e=l,l=l&&l.nextSibling}else o&&o.some(g);else r.__e=u.__e;r.__k||(r.__k=u.__k||[]),t&&t.then||D(r),n.__e(t,r,u)}}else l=r.__e=F(u.__e,r,u,i,f,o,e,c,a,t);return(s=n.diffed)&&s(r),l}function B(n,t){if(n&&8==n.nodeType&&n.data.startsWith("$s"))for(var r=1;n=n.nextSibling;){if(8==n.nodeType)if(n.data.startsWith("$s"))r++;else if(n.data.startsWith("/$s")&&!--r)return n;t&&t.push(n)}}function D(n){n&&(n.__c&&(n.__c.__g|=4),n.__k&&n.__k.some(D))}function E(t,r,u){for(var i=0;i<u.length;)G(u[i++],u[i++],u[i++]);n.__c&&n.__c(r,t),t.some(function(r){try{t=r.__h,r.__h=[],t.some(function(n){n.call(r)})}catch(t){n.__e(t,r.__v)}})}function F(t,r,u,i,f,o,e,l,c,a){var s,h,y,_,k,b,m,M,$=u.props||p,x=r.props,C=r.type;if("svg"==C?f="http://www.w3.org/2000/svg":"math"==C?f="http://www.w3.org/1998/Math/MathML":f||(f="http://www.w3.org/1999/xhtml"),o)for(s=0;s<o.length;s++)if((k=o[s])&&(C?k.localName==C:3==k.nodeType)){t=k,o[s]=null;break}if(!t){if(M=a.ownerDocument||document,!C)return M.createTextNode(x);t=M.createElementNS(f,C,x.is?x:a),l&&(n.__m&&n.__m(r,o),l=!1),o=null}if(C){if(a="template"==C&&t.content||t,o="textarea"==C&&null!=x.defaultValue?null:o&&d.call(a.childNodes),!l&&o)for($={},s=0;s<t.attributes.length;s++)$[(k=t.attributes[s]).name]=k.value;for(s in $)k=$[s],"dangerouslySetInnerHTML"==s?y=k:"children"==s||s in x||"value"==s&&"defaultValue"in x||"checked"==s&&"defaultChecked"in x||N(t,s,null,k,f);for(s in x)k=x[s],"children"==s?_=k:"dangerouslySetInnerHTML"==s?h=k:"value"==s?b=k:"checked"==s?m=k:l&&"function"!=typeof k||$[s]===k||N(t,s,k,$[s],f);h?(l||y&&(h.__html==y.__html||h.__html==t.innerHTML)||(t.innerHTML=h.__html),r.__k=[]):(y&&(t.textContent=""),("foreignObject"==C||"http://www.w3.org/1998/Math/MathML"==f&&v.test(C))&&(f="http://www.w3.org/1999/xhtml"),I(a,w(_)?_:[_],r,u,i,f,o,e,o?o[0]:u.__k&&S(u,0),l,c),o&&o.some(g)),l&&"textarea"!=C||(s="value","progress"==C&&null==b?t.removeAttribute(s):null==b||b===t[s]&&("progress"!=C||b)||N(t,s,b,$[s],f),s="checked",null!=m&&m!=t[s]&&N(t,s,m,$[s],f))}else $===x||l&&t.data==x||(t.data=x);return t}function G(t,r,u,i){try{"function"==typeof t?r?r.__x=t(r)||1:i&&(i=i.__c||i.__e)&&(r=i.__x)&&(i.__x=null,"function"==typeof r?r():t(null)):t.current=r}catch(t){n.__e(t,u)}}function J(t,r,u){var i,f,o,e;if(n.unmount&&n.unmount(t),!(i=t.ref)||i.current&&i.current!=t.__e||G(i,null,r,t),i=t.__c){if(i.componentWillUnmount)try{i.componentWillUnmount()}catch(t){n.__e(t,r)}i.__P=i.__n=null}if(i=t.__k)for(e=0;e<i.length;e++)i[e]&&J(i[e],r,"function"!=typeof t.type||u&&!t.props.__P);!u&&(i=t.__c)&&(i=i.__z)&&(f=B(i,o=[]))&&(i==t.__e&&o.some(g),g(f),g(i)),u||g(t.__e),t.__e=t.__c=t.__=null}function K(n,t,r){return this.constructor(n,r)}function Q(t,r){var u,i,f,o;n.__&&n.__(t,r),9==r.nodeType&&(r=r.documentElement),i=(u=t&&32&t.__u)?null:r.__k,r.__k=m($,{children:[t]}),f=[],o=[],z(r,r.__k,i||p,p,r.namespaceURI,i?null:r.firstChild?d.call(r.childNodes):null,f,i?i.__e:r.firstChild,u,o),E(f,r.__k,o),r.__k.props.children=null}function R(n,t){n&&"object"==typeof n&&(n.__u|=32),Q(n,t)}function U(n){function t(n){var r,u;return this.getChildContext||(r=new Set,(u={})[t.__c]=this,this.getChildContext=function(){return u},this.shouldComponentUpdate=function(n){this.props.value!=n.value&&r.forEach(function(n){n.__g|=4,L(n)})},this.sub=function(n){r.add(n);var t=n.componentWillUnmount;n.componentWillUnmount=function(){r.delete(n),t&&t.call(n)}}),n.children}return t.__c="__cC"+s++,t.__=n,t.Provider=(t.Consumer=function(n,t){return n.children(t)}).contextType=t,t}function W(n){return n.children}function X(n,t){return m(W,{__P:t,children:n})}n={__e:function(n,t,r,u){for(var i,o,e;t=t.__;)if((i=t.__c)&&!(1&i.__g)){i.__g|=4;try{if((e=(o=i.constructor)&&o.getDerivedStateFromError)&&i.setState(o.getDerivedStateFromError(n)),i.componentDidCatch&&(i.componentDidCatch(n,u||{}),e=1),e&&8&i.__g)return void(i.__g|=2)}catch(t){n=t}}throw f=0,n}},t=0,r=function(n){return null!=n&&n.constructor===h},x.prototype.setState=function(n,t){var r=this.__s;r&&r!=this.state||(r=this.__s=_({},this.state)),"function"==typeof n&&(n=n(_({},r),this.props)),n&&(_(r,n),this.__v&&(t&&this.__k.push(t),L(this)))},x.prototype.forceUpdate=function(n){this.__v&&(this.__g|=4,n&&this.__h.push(n),L(this))},x.prototype.render=$,u=[],f=0,o=function(n,t){return n.__v.__b-t.__v.__b},e=Symbol(),l=/(PointerCapture)$|Capture$/i,c=0,a={},s=0;;
return { Component: x, Fragment: $, cloneElement: b, createContext: U, createElement: k, createPortal: X, createRef: M, h: k, hydrate: R, isValidElement: r, options: n, render: Q, toChildArray: O };
})();

modules["vendor/htm.mjs"] = (() => {
var n=function(t,s,r,e){var u;s[0]=0;for(var h=1;h<s.length;h++){var p=s[h++],a=s[h]?(s[0]|=p?1:2,r[s[h++]]):s[++h];3===p?e[0]=a:4===p?e[1]=Object.assign(e[1]||{},a):5===p?(e[1]=e[1]||{})[s[++h]]=a:6===p?e[1][s[++h]]+=a+"":p?(u=t.apply(a,n(t,a,r,["",null])),e.push(u),a[0]?s[0]|=2:(s[h-2]=0,s[h]=u)):e.push(a)}return e},t=new Map;const exported = function(s){var r=t.get(this);return r||(r=new Map,t.set(this,r)),(r=n(this,r.get(s)||(r.set(s,r=function(n){for(var t,s,r=1,e="",u="",h=[0],p=function(n){1===r&&(n||(e=e.replace(/^\s*\n\s*|\s*\n\s*$/g,"")))?h.push(0,n,e):3===r&&(n||e)?(h.push(3,n,e),r=2):2===r&&"..."===e&&n?h.push(4,n,0):2===r&&e&&!n?h.push(5,0,!0,e):r>=5&&((e||!n&&5===r)&&(h.push(r,0,e,s),r=6),n&&(h.push(r,n,0,s),r=6)),e=""},a=0;a<n.length;a++){a&&(1===r&&p(),p(a));for(var l=0;l<n[a].length;l++)t=n[a][l],1===r?"<"===t?(p(),h=[h],r=3):e+=t:4===r?"--"===e&&">"===t?(r=1,e=""):e=t+e[0]:u?t===u?u="":e+=t:'"'===t||"'"===t?u=t:">"===t?(p(),r=1):r&&("="===t?(r=5,s=e,e=""):"/"===t&&(r<5||">"===n[a][l+1])?(p(),3===r&&(h=h[0]),r=h,(h=h[0]).push(2,0,r),r=0):" "===t||"\t"===t||"\n"===t||"\r"===t?(p(),r=2):e+=t),3===r&&"!--"===e&&(r=4,h=h[0])}return p(),h}(s)),r),arguments,[])).length>1?r:r[0]}
return { default: exported };
})();

modules["html.js"] = (() => {
// SPDX-License-Identifier: Apache-2.0

/** The page's one import of Preact and htm: templates without a compiler. */
const { h, render, Component, createRef } = modules["vendor/preact.mjs"];
const { default: htm } = modules["vendor/htm.mjs"];

const html = htm.bind(h);
;

/** cx joins class names and drops false ones. */
const cx = (...names) => names.filter(Boolean).join(" ");
return { html, cx, render, Component, createRef };
})();

modules["address.js"] = (() => {
// SPDX-License-Identifier: Apache-2.0

/**
 * The address of the page, behind its #: lesson=tombstones&step=2&lang=zh&speed=slow&teach. Steps
 * count from 1, as on the page. speed is slow, full, or a number of milliseconds per hop. teach is
 * for a teacher: large type, answers only on request, and the arrow keys turn the steps. desk opens
 * the pipeline without a lesson.
 */

/** SLOW_MS is the delay per hop of speed=slow. */
const SLOW_MS = 1500;
const MAX_MS = 3000;

/** readAddress returns what a URL asks for. A field that it lacks, or that is wrong, is undefined. */
function readAddress(url = location) {
  const asked = new URLSearchParams(url.hash.slice(1));
  const speed = { slow: SLOW_MS, full: 0 }[asked.get("speed")] ?? Number.parseInt(asked.get("speed"), 10);
  const step = Number.parseInt(asked.get("step"), 10);
  return {
    lesson: asked.get("lesson") || undefined,
    step: step > 0 ? step - 1 : 0,
    language: asked.get("lang") || undefined,
    delayMs: speed >= 0 ? Math.min(speed, MAX_MS) : undefined,
    teach: asked.has("teach"),
    desk: asked.has("desk"),
  };
}

/** writeAddress makes the address lead to the step of the lesson that is open, or to none. */
function writeAddress(lesson) {
  const asked = new URLSearchParams(location.hash.slice(1));
  asked.delete("lesson");
  asked.delete("step");
  if (lesson) {
    asked.set("lesson", lesson.id);
    asked.set("step", lesson.step + 1);
  }
  const text = asked.toString().replaceAll(/=(?=&|$)/g, "");
  if (text !== location.hash.slice(1)) history.replaceState(null, "", text ? "#" + text : location.pathname);
}
return { readAddress, writeAddress };
})();

modules["messages.en.js"] = (() => {
// SPDX-License-Identifier: Apache-2.0

/** The texts of the page in English. messages.zh.js has the same keys. */
const exported = {
  title: "informerstack laboratory", laboratory: "laboratory", otherLanguage: "zh-Hans",
  skip: "Skip to the pipeline", waiting: "Waiting for the first frame…", tools: "Page settings", docs: "docs", stateLine: "State of the program",
  time: "Time", run: "▶ Run", pause: "❚❚ Pause", play: "▶ Play", slow: "slow motion", live: "● Live",
  perHop: "{delay} per hop", fullSpeed: "full speed", following: "following", paused: "paused",
  randomFaults: { on: "random faults", paused: "random faults pause during a lesson", help: "Requests and watches fail at random, as with --faults. The settings end that." },
  held: "paused, {n} event{+s} held:", readOnly: "read only", close: "Close", cancel: "Cancel", apply: "Apply",
  replay: "Recording", position: "Position", replaySpeed: "Speed", frameBack: "One frame back", frameOn: "One frame on",
  connection: { connecting: "connecting…", connected: "live", disconnected: "disconnected, trying again", refused: "refused: open the link that the program has printed", recorded: "recording" },
  program: { loading: "The laboratory is loading.", meanwhile: "Until it runs, the page plays a recording.", failed: "The laboratory does not run in this browser ({error}). The page plays a recording.", recorded: "All recorded lessons" },
  events: "{n} event{+s}, {rate}/s", sampled: "sampled: {n} event{+s} not drawn",
  sampledHelp: "There are more events than can be drawn. The counters are exact; the lists and tokens are a sample.",
  more: "+{n} more", objects: "{n} object{+s}", bar: "Controls of: {piece}", open: "What is this? {piece}",
  key: { " ": "space", Escape: "Esc", ArrowLeft: "←", End: "End" }, chip: { follow: "{key}, follow this key" },
  panel: "Explanations", tab: { lessons: "Lessons", code: "Code", piece: "Piece", events: "Events" },
  eventsNote: "The newest {n} events as text. Follow a key to see only its events.",
  pieceNone: "Click the heading of a card to read what it is, what always holds, and where its code is.",
  invariant: "What always holds", mistake: "Often misunderstood", readOn: "Read on",
  link: { code: "code", chapter: "chapter", test: "test", post: "post" },

  server: { down: "not reachable", count: "{n} object{+s}.", empty: "the log holds no changes", compacted: "Compacted up to {rv}: older versions are gone.", note: "Every write gets the next resourceVersion.", unread: "Shaded: {n} change{+s} that the reflector has not received.", others: "Newer than {read} are only writes to other resources, such as Leases." },
  phase: { idle: "idle", starting: "Starting", listing: "Listing", streaming: "Streaming", opening: "Opening", watching: "Watching", "backing off": "Waiting" },
  fault: { cut: "The watch was cut.", stall: "The watch is stalled.", expire: "The watch has expired." },
  kindPhase: { unknown: "not known yet", absent: "absent", "not established": "not established", "version not served": "not in this version", serving: "served", unwatched: "not followed" },
  reason: { "a round begins": "a round begins", "the list is complete": "the list is complete", "the watch is open": "the watch is open", "the watch ended, it resumes": "the watch ended, it resumes" },
  reflector: { from: "after {from}", because: ": {reason}", picture: "Reflector: {phase}", backoff: "next attempt in {wait}", each: "One reflector for each namespace:", leftOut: "forbidden: the informer does without it", failures: "{n} failure{+s}" },
  queue: { tombstone: "a tombstone: the delete itself was missed, so this is the last known state",
    keys: "{n} key{+s}", deltas: "{n} delta{+s}", empty: "empty: no change waits here", hidden: "Each namespace has its own part of this queue. The page does not see what waits here.", hold: "The consumer waits.", all: "all objects", note: "A key's place is that of its oldest delta. One Pop takes all deltas of a key.", noteReal: "One entry per change, in the order of arrival." },
  store: { empty: "no objects", stale: "older than on the server", index: "index", indexFuncHelp: "What the function of this index returns for the followed object: its key is in the set of each value.", noValues: "No object has a value: the index has no set.", behind: "{n} behind", behindHelp: "changes of the server's log that the store lacks",
    noList: "no list yet", asOf: "current as of {ago} ago", lost: "a change may be missing", freshHelp: "How current is the copy? It holds every change up to this version, and everything that the server had at that time." },
  handlers: { count: "{n} cursor{+s}", log: "the newest changes", current: "no backlog", pending: "{n} pending", oldestHelp: "age of the oldest pending change", slow: "{delay} per call", panics: "panics: {n}", note: "Each handler has a cursor in one shared log and reads at its own pace." },
  workqueue: { bucket: "bucket {tokens}/{burst}", bucketEmpty: "bucket empty: {n} wait", bucketHelp: "The token bucket of all failed keys: each failure takes a token, and {rate} are added per second. Without a token, a key waits for one.", queue: "queue", dirty: "dirty", processing: "processing", delayed: "delayed", limited: "{n} key{+s} with failures", limiter: "limiter", limiterHelp: { MaxOf: "MaxOf: the longer delay of Exponential and Bucket, as by default", Exponential: "5 ms, doubled with each failure of the key, at most 1,000 s", FastSlow: "1 s for the first three failures of the key, then 10 s", Bucket: "100 retries of all keys at once, then 10 per second; it counts no failures of a key" }, requeuesHelp: "failures since the last Forget; after the next one the key waits {next}", shutDown: "ShutDown was called: the queue refuses keys, and hands out those that it has.", drain: "ShutDownWithDrain was called: the queue refuses keys.", draining: "It waits until no key is queued or in processing.", drained: "It has returned: no key is queued, and no worker has one.", refused: "Refused: {n}.", failures: "✕{n}, next {next}", failuresHelp: "number of failures, and the delay after the next one, or longer if the bucket is empty", stale: "copy {rv} is old", staleHelp: "A write of this copy was refused, or the server has a newer one: the key waits for the watch.", again: "was added while a worker has it: it is dirty, and Done will queue it again.", undone: "is in processing for ever: no worker gets it again, although it is dirty.", note: "However often a key is added, it is queued once, and one worker has it.", fair: "The namespaces take turns. ↓ is a low priority.", groupsHelp: "The namespaces, with the number of their keys in the queue, and + those that workers have.", priority: "priority {priority}" },
  workers: { idle: "{n} idle", standby: "{n} waiting for a leader", dead: "dead letters", ended: "{n} ended: the queue is shut down", attempts: "{n} attempt{+s}" },
  outcome: { success: "ok", error: "failed", requeue: "requeued", terminal: "terminal", panic: "panicked" },
  election: { off: "off", offNote: "This process works without a lease.", nobody: "Nobody leads: the workers wait.", token: "token", left: "lease: {left} left", leads: "leads", renewed: "renewTime {ago}", observed: "observedTime {ago}", waits: "waits", holds: "holder, does not lead", stopped: "stopped", paused: "paused", cut: "cut off", opens: "The lease can be taken in {wait}.", deadlineHelp: "RenewDeadline: if its last renewal is older, the leader stops, although the lease still names it.", writesHelp: "The requests name version {rv} of the lease: the server accepts a write only if that is still the present version.", ahead: "clock +{by}", stored: "stored token {token}", refused: "writes refused: {n}" },

  journey: { title: "Journey", total: "{time} in total", empty: "No change has been seen yet.", notYet: "no event seen", earlier: "Earlier journey", later: "Later journey", following: "Bars: waiting or working. Dots: events. Times count from the first event.", note: "One of the newest changes. Click a key to follow it." },
  hop: { server: "server", deltafifo: "delta queue", store: "store", handler: "handler", workqueue: "workqueue", worker: "worker", reflector: "reflector" },
  search: { label: "Find a key", example: "settings-1", none: "no such key in the store" },
  strip: { all: "Pieces", names: { server: "server", reflector: "reflector", store: "store", handlers: "handlers", workqueue: "workqueue", workers: "workers", election: "election" }, down: "down", queued: "{n} queued", running: "{n} running", leader: "leader {name}", noLeader: "no leader" },
  rail: { ask: "asks", wire: "watch", deltas: "deltas", pop: "Pop", notify: "notify", keys: "Add", get: "Get", write: "write" },
  captionNone: "Each hop is explained here when it happens.", captionFailed: "This call has failed: {error}",
  caption: {
    server: {
      LIST: "The server has answered a LIST: all objects as of version {rv}. The reflector remembers this version, because a watch can begin there.",
      "LIST failed": "The LIST has failed: {error}",
      WATCH: "The reflector opens a watch from version {rv}: the server sends every later change.",
      "WATCH initial": "The reflector opens a watch that sends first the objects that exist, then a bookmark, then every change. It needs no LIST.",
      "WATCH expired": "The server refuses the watch: it no longer has all changes after version {rv}. Only a complete list closes the gap.",
      "WATCH failed": "The watch could not be opened: {error}",
      ADDED: "The watch sends {key}, which is new to it, as version {rv}. The reflector does not call your handler: it queues a delta, so that a slow handler never makes the network wait.",
      "ADDED initial": "{key} is older than the watch, which sends it as ADDED all the same. The reflector collects these objects until the bookmark.",
      MODIFIED: "The watch sends a change of {key}, which is version {rv} now. The reflector does not call your handler: it queues a delta, so that a slow handler never makes the network wait.",
      "MODIFIED own": "The write of a worker comes back: the watch sends {key} as version {rv}. It goes the same way as a change by anybody else.",
      DELETED: "The watch sends that {key} is gone, with its last state. The reflector queues a delta, as for any change.",
      BOOKMARK: "A bookmark: the reflector misses no change up to version {rv}, so a new watch can begin there.",
      "BOOKMARK initial": "The bookmark ends the objects that existed. The reflector has all of them as of version {rv}, and gives them to the queue as one list.",
      "ERROR failed": "The server ends the watch with an error: {error}",
      "ERROR expired": "410 Gone: the server says that it no longer has the changes after the watch's version. Only a complete list closes the gap.",
      PUT: "A worker has written to the server, not to the store. The store gets the change like everybody else, by the watch.",
      "PUT conflict": "409 Conflict: the server refuses a worker's write. The object is not as the worker has read it, and stays as it is.",
      "PUT refused": "The server answers a worker's write with an error.",
      "PUT failed": "A worker's write has failed: {error}",
      "PUT token": "A leader has written with fencing token {n}, which the object keeps.",
      "PUT fenced": "A leader's write with fencing token {n} was not done: {error}",
    },
    deltafifo: {
      Add: "A delta of {key} enters the queue. It waits there until the informer pops it.",
      "Add beside": "A delta of {key} enters the queue, behind {n} earlier one{+s} of the same key.",
      Replace: "A complete list enters the queue. Known objects that are not in it become deletes.",
      Resync: "A resync queues the known objects again, without a request.",
      Pop: "The informer pops {key}. It changes the store first, then it tells the handlers.",
      "Pop many": "One Pop takes all {n} deltas of {key}, oldest first: {types}.",
      "Pop list": "The informer pops {key} as a list has it: no watch event.",
      "Pop resync": "The informer pops {key} for a resync: the store's own object again, not a change.",
      "Pop all": "The informer pops an entry that concerns all objects: {types}.",
    },
    store: {
      Add: "The store has {key} now, as version {rv}. Only then are the handlers told, so a handler never finds an older object in the store.",
      Update: "The store has {key} as version {rv} now. Only then are the handlers told, so a handler never finds an older object in the store.",
      "Update replaces": "In the store, version {rv} of {key} replaces version {old}. Only then are the handlers told, so a handler never finds an older object in the store.",
      "Update same": "The store gets version {rv} of {key} again: it had this version already.",
      Delete: "The store no longer has {key}. Only then are the handlers told.",
    },
    handler: {
      OnAdd: "A handler gets {key}, which is new to it. It should only queue the key: while it works, the changes behind this one wait.",
      "OnAdd initial": "A handler gets {key} as part of its first list. OnAdd does not mean that the object was created just now.",
      OnUpdate: "A handler gets {key}, the old object and the new one. It should only queue the key: while it works, the changes behind this one wait.",
      "OnUpdate replaces": "A handler gets {key} twice: the old object, version {old}, and the new one, version {rv}. It should only queue the key: while it works, the changes behind this one wait.",
      "OnUpdate same": "OnUpdate with version {rv} as the old object and as the new one: nothing has changed. A resync or a complete list delivers it again.",
      OnDelete: "A handler gets the last state of {key}. It should queue the key as for any change: reconcile then finds that the object is gone.",
      "OnDelete lost": "A tombstone: the delete of {key} itself was missed, and a list has shown that it is gone. The handler gets the last state that was known.",
    },
    workqueue: {
      Add: "The workqueue gets the key {key}, not the object.",
      "Add queued": "{key} was added before, and no worker has got it since. So nothing happens: several changes become one piece of work.",
      "Add again": "{key} is in `processing`: it becomes dirty, and no second worker gets it. Only Done queues it again.",
      AddAfter: "{key} comes back after a delay.",
      "AddAfter delay": "{key} comes back in {delay}.",
      AddRateLimited: "The call has failed. {key} comes back after a delay.",
      "AddRateLimited delay": "The call has failed, {n} time{+s} in a row. {key} waits under `delayed` and comes back in {delay}.",
      Get: "A worker gets {key}. The key is in `processing` now, so no other worker gets it.",
      "Get merged": "{key} was added {n} times, and a worker gets it once. It is in `processing` now, so no other worker gets it.",
      "Get retry": "The delay of {key} is over: a worker gets it for attempt {n}.",
      Forget: "Forget: the failures of {key} are no longer counted.",
      "Forget success": "reconcile has succeeded, so Forget clears the failures of {key}: its next failure would count as the first.",
      "Forget gaveUp": "No success: reconcile has failed, and the controller gives {key} up. Forget clears its failures, and it is not tried again until something changes.",
      Done: "Done: {key} leaves `processing`.",
      "Done again": "Done: {key} leaves `processing`. It was added meanwhile, so it is queued again.",
    },
    worker: {
      reconcile: "reconcile gets the key {key} and nothing else. What counts is the object that the store has now, not the event.",
      "reconcile gone": "reconcile gets the key {key}, and the store no longer has the object.",
      "reconcile own": "The store has {key} as version {version}, which this controller wrote itself. reconcile compares once more.",
      reconciled: "reconcile has returned.",
      "reconciled wrote": "reconcile has written: {key} is version {version} now. This comes back as a change, by the watch.",
      "reconciled nothing": "reconcile has written nothing. So this call causes no change, and the loop ends here.",
      "reconciled delay": "reconcile has returned, and asks to be called again in {delay}.",
      "reconciled failed": "reconcile has returned an error: {error}",
    },
  },
  plot: { title: { depth: "Waiting", rate: "Events per second" }, window: "last {s} s", depth: "queue depth", backlog: "handler backlog", retries: "retries", perSecond: "events/s" },

  lessons: { title: "Lessons", intro: "Each lesson has tasks for you, on the real pipeline of this page.", none: "This program has no lessons.", steps: "{n} step{+s}", done: "✓ done", place: "Lesson {n} of {of} · step {step} of {steps}", back: "Back", next: "Next", end: "Finish", all: "All lessons", nextLesson: "Next lesson: {title}", task: "Your turn:", taskThere: "Your turn, in the laboratory:", taskDone: "✓ Done:", taskShown: "✓ Shown here:", hint: "Hint", solve: "Show me", where: "Click a card.", pick: "Here: {piece}", show: "Show the answer", elsewhere: "The program does not play this lesson any more: another page may have started one.", here: "Play it here", preparing: "The pipeline gets ready for this step…", running: "The pipeline is playing this step…", notHere: "It is not here.", failed: "This step did not work.", again: "Start this step again" },
  stop: { title: "The lesson has stopped here", proceed: "Continue", present: "Back to the present", lookBack: "Press ← to see the frame before, then → to come back here.", again: "Look at the stop again", seen: "The lesson has stopped here." },
  code: {
    title: "Your own code", intro: "A controller as the posts write it. The marked line is where the key is; a bar shows the lines that it has passed. A switch changes a line, here and in the running program.",
    next: "next:", outside: "is not in this code", off: "Every line is as it should be.",
    done: { name: "no Done", ready: "Change an object: its key stays in `processing` after reconcile.", stuck: "[[{key}]] is in `processing` for ever: no worker gets it again.", dirty: "[[{key}]] is in `processing` for ever: no worker gets it again, although it is dirty." },
    forget: { name: "no Forget", ready: "Let reconciles fail, then succeed: the number of `NumRequeues` stays, so the next failure waits longer." },
    add: { name: "use Add", ready: "Let reconciles fail: a key that fails is tried again at once, for ever. It never waits under `delayed`, its failures are not counted, and it keeps a worker busy. Here each failure takes 0.1 s, or the loop would fill a core." },
    slow: { name: "slow handler", ready: "Make many changes: each call of the handler takes a second, so its backlog grows. The store has these changes, the workqueue does not, and the other handler is not held up." },
  },
  help: { title: "Keys and controls", intro: "Every control has a key. Click a name to run it.", list: "Tab reaches each list of keys; the arrow keys move within it, and Enter follows a key." },
  settings: { title: "Settings", intro: "Applying other settings builds the pipeline again, on the same server.", queue: "Delta queue", list: "Initial list", fifo: "first in, first out", fair: "fair: namespaces take turns", workers: "number", workMs: "time per key (ms)", workload: "Workload", rate: "changes per second", objects: "objects", faults: "requests and watches fail at random" },

  action: {
    run: { name: "run or pause", help: "Hold every change where it is, or let them travel." },
    step: { name: "Step", help: "Let exactly one hop happen." },
    back: { name: "look back", help: "Show the frame before. The program goes on." },
    live: { name: "present", help: "Show the running program again." },
    slower: { name: "slower", help: "More time per hop." },
    faster: { name: "faster", help: "Less time per hop." },
    create: { name: "Create", help: "Create an object on the server." },
    change: { name: "Change", help: "Change the followed object, or any." },
    delete: { name: "Delete", help: "Delete the followed object, or any." },
    compact: { name: "Compact", help: "The server forgets old resourceVersions." },
    define: { name: "Define", help: "Create the CustomResourceDefinition of Widget, or delete it with its objects." },
    server: { name: "Down", help: "Take the server down, or up again." },
    workload: { name: "Load", help: "Change objects all the time, or stop." },
    cut: { name: "Cut", help: "Cut the connection of the watch." },
    stall: { name: "Stall", help: "The watch stays open but delivers nothing." },
    expire: { name: "Expire", help: "End the watch with 410 Gone." },
    watchList: { name: "WatchList", help: "Get the initial list as a stream instead of by LIST." },
    namespace: { name: "batch", help: "Add the namespace batch to the informer, or remove it." },
    queue: { name: "RealFIFO", help: "Use a RealFIFO instead of a DeltaFIFO." },
    resync: { name: "Resync", help: "Replay the store to the handlers, without a request." },
    own: { name: "Owner", help: "Give the followed object other owners on the server: web, db, both, none." },
    shutdown: { name: "ShutDown", help: "Shut the workqueue down, or start the program again." },
    fair: { name: "Fair", help: "Let the namespaces take turns in the workqueue. The program starts again." },
    slow: { name: "Slow", help: "Slow down the last handler, or stop that." },
    panic: { name: "Panic", help: "Make the last handler panic once." },
    fail: { name: "Fail", help: "Make reconciles return an error." },
    hang: { name: "Hang", help: "Make reconciles take very long." },
    conflict: { name: "Conflict", help: "Make writes of reconciles conflict (409)." },
    noted: { name: "Noted", help: "Note the workers’ writes: after a Conflict, a key waits for a newer copy. The program starts again." },
    kill: { name: "Kill", help: "Kill the leader; its lease has to expire." },
    release: { name: "Release", help: "Stop the leader; it clears holderIdentity first." },
    isolate: { name: "Cut", help: "Cut the leader off from the server, or end that." },
    freeze: { name: "Pause", help: "Pause the leader's process, or let it continue." },
    settings: { name: "Settings", help: "Queues, list, workers, workload." },
    lessons: { name: "Lessons", help: "Show the lessons." },
    search: { name: "find a key", help: "Find a key among all objects, to follow it." },
    code: { name: "Code", help: "Show the code of a controller." },
    events: { name: "Events", help: "Show the events as text." },
    unfollow: { name: "follow all keys", help: "Stop following a key." },
    theme: { name: "Light or dark", help: "Switch between light and dark." },
    language: { name: "中文", help: "Switch between English and Chinese.", icon: "中文" },
    help: { name: "Help", help: "Show this list." },
  },

  piece: {
    time: { name: "Time" }, page: { name: "Page" },
    server: {
      name: "API server", title: "The API server",
      what: "The server keeps a log of all writes. Each write gets the next `resourceVersion`. A LIST returns the state at one version, and a WATCH sends every change after a version.",
      laws: ["resourceVersions ascend; no two writes have the same one.", "A watch from version N delivers every change after N, or ends with 410 if the server has compacted them."],
      mistake: "resourceVersions of different resources are not comparable, and a client must not compute with them.",
    },
    reflector: {
      name: "reflector", title: "Reflector",
      what: "The reflector keeps a store equal to a collection on the server. It lists once, remembers the list's `resourceVersion`, and watches from there. A watch that was cut resumes; a watch that has expired leads to a new list.",
      laws: ["R1: the store has taken every change up to the last resourceVersion, and no relist asks for an older state.", "R2: one watch is open while the phase is Watching or Streaming, otherwise none."],
      mistake: "A relist requests everything again after an error. A resync sends no request at all: it replays what the store already has.",
    },
    queue: {
      name: "delta queue", title: "DeltaFIFO and RealFIFO",
      what: "The queue connects the network and the store, so that neither waits for the other. A DeltaFIFO holds keys, each with all its changes since it was last popped. A RealFIFO holds single changes in the order of arrival.",
      laws: ["D1: a key is in items exactly if it is in the queue, once.", "D2: a queued key has at least one delta.", "D3: no two consecutive deltas of a key are both Deleted."],
      mistake: "Only consecutive deletes are merged. Two updates stay two deltas.",
    },
    store: {
      name: "store", title: "Store and indexes",
      what: "The store is the local copy: objects by key. An index answers questions such as “which objects are in this namespace?” without looking at every object.",
      laws: ["S1: an entry is in an index's set for a value exactly if the index function computes that value from its object.", "S2: no set of an index is empty."],
      mistake: "The store may be older than your own write. It is eventually consistent with the server.",
    },
    handlers: {
      name: "handlers", title: "Change log and handlers",
      what: "After the store has changed, the change is appended to one log. Each handler reads the log at its own pace, in its own goroutine. What it has not read is its backlog.",
      laws: ["L1: a handler is called by one goroutine, one call at a time, in the order of the changes.", "D2: a change is emitted after the store has changed, so a handler never reads an older object from the store."],
      mistake: "OnAdd does not mean “was created”. All objects that exist at the start arrive as OnAdd, and again for each handler that is added late.",
    },
    workqueue: {
      name: "workqueue", title: "Workqueue",
      what: "Handlers add keys and workers get them. `dirty` holds the keys that must be worked on, `processing` those that workers have, and the queue orders the keys that may be handed out. A failed key waits in a heap until it is due.",
      laws: ["Q1: items contains exactly the keys that are dirty, processing or both.", "Q2: the queue contains exactly the keys that are dirty and not processing, each once."],
      mistake: "`Forget` resets the count of failures. It does not replace `Done`, and without `Done` a key is never handed out again.",
    },
    workers: {
      name: "workers", title: "Controller and workers",
      what: "A worker takes a key, calls reconcile and calls Done. Reconcile reads the current state and acts on it; its writes go to the server and return as changes. A key that is given up becomes a dead letter.",
      laws: ["C1: no two calls of reconcile have the same key at the same time.", "C2: after the last change of a key, reconcile is called at least once more for it.", "C3: a failed call is retried until it succeeds or the key is given up."],
      mistake: "A key says that something changed, not what. One reconcile may handle many changes.",
    },
    election: {
      name: "leader election", title: "Leader election",
      what: "Several processes run and one of them works. A Lease on the server names the leader, which renews it. A candidate that has seen no renewal for the lease's duration, by its own clock, takes it.",
      laws: ["E1: the lease is written only if the replaced record names this candidate or no holder, or has not changed for its duration by this candidate's clock.", "E3: OnStoppedLeading is called once after each OnStartedLeading."],
      mistake: "A leader that was paused may believe that it still leads. The fencing token lets the server refuse its late writes.",
    },
  },
};
return { default: exported };
})();

modules["messages.zh.js"] = (() => {
// SPDX-License-Identifier: Apache-2.0

/** The texts of the page in Chinese. messages.en.js has the same keys. */
const exported = {
  title: "informerstack 实验室", laboratory: "实验室", otherLanguage: "en",
  skip: "跳到流水线", waiting: "正在等待第一帧数据…", tools: "页面设置", docs: "文档", stateLine: "程序状态",
  time: "时间控制", run: "▶ 运行", pause: "❚❚ 暂停", play: "▶ 播放", slow: "慢动作", live: "● 回到当前",
  perHop: "每一跳 {delay}", fullSpeed: "全速", following: "正在跟踪", paused: "已暂停",
  randomFaults: { on: "随机故障", paused: "课程进行时暂停随机故障", help: "请求和 watch 会随机失败，与 --faults 相同。可在设置中关闭。" },
  held: "已暂停，{n} 个事件被拦住：", readOnly: "只读", close: "关闭", cancel: "取消", apply: "应用",
  replay: "录像", position: "位置", replaySpeed: "速度", frameBack: "后退一帧", frameOn: "前进一帧",
  connection: { connecting: "正在连接…", connected: "实时", disconnected: "连接已断开，正在重试", refused: "被拒绝：请打开程序打印的链接", recorded: "录像" },
  program: { loading: "正在加载实验室。", meanwhile: "加载完成之前，页面播放录像。", failed: "实验室无法在此浏览器中运行（{error}）。页面播放录像。", recorded: "全部录制的课程" },
  events: "{n} 个事件，{rate} 个/秒", sampled: "已采样：{n} 个事件未画出",
  sampledHelp: "事件太多，无法全部画出。计数是准确的，列表和圆点只是样本。",
  more: "还有 {n} 个", objects: "{n} 个对象", bar: "{piece}的操作", open: "这是什么？{piece}",
  key: { " ": "空格", Escape: "Esc", ArrowLeft: "←", End: "End" }, chip: { follow: "{key}，跟踪这个 key" },
  panel: "讲解", tab: { lessons: "课程", code: "代码", piece: "组件", events: "事件" },
  eventsNote: "最近 {n} 个事件的文字记录。跟踪一个 key 后只显示它的事件。",
  pieceNone: "点击卡片标题，查看该组件是什么、有哪些不变式、代码在哪里。",
  invariant: "始终成立的不变式", mistake: "常见误解", readOn: "延伸阅读",
  link: { code: "代码", chapter: "章节", test: "测试", post: "文章" },

  server: { down: "无法访问", count: "{n} 个对象。", empty: "日志中没有变更", compacted: "{rv} 及更早的版本已被压缩（compact）。", note: "每次写入都会得到下一个 resourceVersion。", unread: "灰色部分：Reflector 没有收到的 {n} 个变更。", others: "比 {read} 新的只有对其他资源（例如 Lease）的写入。" },
  phase: { idle: "空闲", starting: "启动中", listing: "LIST", streaming: "流式列表", opening: "打开 WATCH", watching: "WATCH", "backing off": "退避等待" },
  fault: { cut: "watch 已断开。", stall: "watch 已卡住。", expire: "watch 已过期。" },
  kindPhase: { unknown: "还不知道", absent: "不存在", "not established": "尚未建立", "version not served": "没有这个版本", serving: "已提供", unwatched: "没有跟踪" },
  reason: { "a round begins": "开始新一轮", "the list is complete": "列表已完整", "the watch is open": "watch 已打开", "the watch ended, it resumes": "watch 已结束，从原处继续" },
  reflector: { from: "由“{from}”进入", because: "，{reason}", picture: "Reflector:{phase}", backoff: "{wait} 后重试", each: "每个 namespace 一个 reflector：", leftOut: "被禁止：informer 不等它", failures: "失败 {n} 次" },
  queue: { tombstone: "墓碑：没有收到删除事件本身，所以这是最后已知的状态",
    keys: "{n} 个 key", deltas: "{n} 个 delta", empty: "空：这里没有等待的变更", hidden: "每个 namespace 在这个队列里有自己的一部分。页面看不到这里有什么在等。", hold: "消费者在等待。", all: "全部对象", note: "key 的位置由它最早的 delta 决定；一次 Pop 取走一个 key 的全部 delta。", noteReal: "每个变更一项，按到达顺序排列。" },
  store: { empty: "没有对象", stale: "比服务器上的旧", index: "索引", indexFuncHelp: "这个索引的函数对所跟踪的对象返回的值：它的 key 就在每个值的集合里。", noValues: "没有对象有索引值：这个索引没有集合。", behind: "落后 {n}", behindHelp: "服务器日志中 store 还没有的变更数",
    noList: "还没有列表", asOf: "数据截至 {ago} 前", lost: "可能缺少变更", freshHelp: "副本有多新？它包含这个版本及之前的所有变更，以及服务器在那一时刻的全部内容。" },
  handlers: { count: "{n} 个游标", log: "最近的变更", current: "没有积压", pending: "积压 {n} 个", oldestHelp: "最早一个积压变更的等待时间", slow: "每次调用 {delay}", panics: "panic {n} 次", note: "所有 handler 共用一份变更日志，各有自己的游标，按自己的速度读取。" },
  workqueue: { bucket: "令牌桶 {tokens}/{burst}", bucketEmpty: "令牌桶已空：{n} 个在等", bucketHelp: "所有失败的 key 共用的令牌桶：每次失败取一个令牌，每秒补充 {rate} 个；没有令牌就得等。", queue: "queue", dirty: "dirty", processing: "processing", delayed: "延时", limited: "{n} 个 key 有失败记录", limiter: "限速器", limiterHelp: { MaxOf: "MaxOf：取 Exponential 与 Bucket 中较长的延时，这是默认的组合", Exponential: "从 5 ms 起，key 每失败一次就翻倍，最长 1000 秒", FastSlow: "key 的前三次失败各等 1 秒，之后每次 10 秒", Bucket: "所有 key 合计先允许 100 次重试，之后每秒 10 次；不记录单个 key 的失败次数" }, requeuesHelp: "上一次 Forget 以来的失败次数；再失败一次要等 {next}", shutDown: "已调用 ShutDown：队列拒绝新的 key，已有的仍会交出去。", drain: "已调用 ShutDownWithDrain：队列拒绝新的 key。", draining: "它在等待：直到没有 key 在排队或处理中。", drained: "它已返回：没有 key 在排队，也没有 worker 拿着 key。", refused: "已拒绝 {n} 次。", failures: "✕{n}，下次 {next}", failuresHelp: "失败次数，以及再次失败后的延时；令牌桶为空时更长", stale: "副本 {rv} 已过时", staleHelp: "用这个副本的写入被拒绝过，或者服务器上已有更新的版本：key 在等 watch 送来新的副本。", again: "在 worker 处理期间又被加入：它是 dirty 的，调用 Done 后会重新入队。", undone: "一直留在 processing 中：虽然它是 dirty 的，却再也没有 worker 能取到它。", note: "一个 key 无论加入多少次，只排队一次，同一时刻只由一个 worker 处理。", fair: "各个 namespace 轮流取 key。↓ 表示优先级低。", groupsHelp: "各个 namespace：排队的 key 数，+ 后面是 worker 手里的 key 数。", priority: "优先级 {priority}" },
  workers: { idle: "{n} 个空闲", standby: "{n} 个等待 leader", dead: "死信", ended: "{n} 个已退出：队列已关闭", attempts: "尝试 {n} 次" },
  outcome: { success: "成功", error: "失败", requeue: "重新入队", terminal: "终止", panic: "panic" },
  election: { off: "未启用", offNote: "此进程不使用租约（lease）。", nobody: "没有 leader：worker 在等待。", token: "fencing token", left: "租约剩余 {left}", leads: "leader", renewed: "renewTime {ago}", observed: "observedTime {ago}", waits: "等待", holds: "持有者，但不是 leader", stopped: "已停止", paused: "已冻结", cut: "已断开", opens: "{wait} 后可以接管租约。", deadlineHelp: "RenewDeadline：上次续期早于这一刻，leader 就停下，尽管租约里还是它的名字。", writesHelp: "这些请求带着租约的版本 {rv}：只有它仍是当前版本，服务器才接受写入。", ahead: "时钟快 {by}", stored: "已保存 token {token}", refused: "拒绝写入 {n} 次" },

  journey: { title: "一次变更的旅程", total: "共 {time}", empty: "还没有看到变更。", notYet: "没有看到事件", earlier: "上一次旅程", later: "下一次旅程", following: "横条：等待或处理；圆点：事件。时间从第一个事件算起。", note: "最近的变更之一。点击任意 key 可以跟踪它。" },
  hop: { server: "API Server", deltafifo: "Delta 队列", store: "Store", handler: "Handler", workqueue: "WorkQueue", worker: "Worker", reflector: "Reflector" },
  search: { label: "查找 key", example: "settings-1", none: "store 中没有这样的 key" },
  strip: { all: "组件", names: { server: "API Server", reflector: "Reflector", store: "Store", handlers: "Handler", workqueue: "WorkQueue", workers: "Worker", election: "选主" }, down: "不可用", queued: "{n} 个排队", running: "{n} 个运行中", leader: "leader {name}", noLeader: "没有 leader" },
  rail: { ask: "请求", wire: "watch", deltas: "delta", pop: "Pop", notify: "通知", keys: "Add", get: "Get", write: "写入" },
  captionNone: "每一步发生时，这里会说明原因。", captionFailed: "这次调用失败了：{error}",
  caption: {
    server: {
      LIST: "服务器应答了 LIST：版本 {rv} 时的全部对象。reflector 记住这个版本，watch 可以从这里开始。",
      "LIST failed": "LIST 失败：{error}",
      WATCH: "reflector 从版本 {rv} 打开 watch，服务器会发送此后的每个变更。",
      "WATCH initial": "reflector 打开一个 watch：先收到已有的对象，再收到一个 bookmark，然后是每个变更。不需要 LIST。",
      "WATCH expired": "服务器拒绝了 watch：版本 {rv} 之后的变更已不完整。只有一份完整的列表才能补上缺口。",
      "WATCH failed": "watch 没能打开：{error}",
      ADDED: "watch 送来 {key}，对它来说是新对象，版本 {rv}。reflector 不会直接调用你的 handler，而是把一个 delta 放进队列：handler 再慢，也不会拖住网络。",
      "ADDED initial": "{key} 在 watch 打开之前就已存在，但同样以 ADDED 送来。reflector 先收集这些对象，直到收到 bookmark。",
      MODIFIED: "watch 送来 {key} 的一次变更，现在是版本 {rv}。reflector 不会直接调用你的 handler，而是把一个 delta 放进队列：handler 再慢，也不会拖住网络。",
      "MODIFIED own": "worker 的写入回来了：watch 送来 {key}，版本 {rv}。它和别人的变更走同一条路。",
      DELETED: "watch 通知 {key} 已不存在，并附上它最后的状态。和其他变更一样，reflector 把一个 delta 放进队列。",
      BOOKMARK: "这是一个 bookmark：到版本 {rv} 为止，reflector 没有遗漏变更，新的 watch 可以从这里开始。",
      "BOOKMARK initial": "bookmark 表示已有的对象发送完毕。reflector 有了版本 {rv} 时的全部对象，把它们作为一份列表交给队列。",
      "ERROR failed": "服务器以一个错误结束了 watch：{error}",
      "ERROR expired": "410 Gone：服务器说，它不再保有 watch 所在版本之后的变更。只有一份完整的列表才能补上缺口。",
      PUT: "worker 写的是服务器，而不是 store。和其他人一样，store 要等 watch 送来这个变更。",
      "PUT conflict": "409 Conflict：服务器拒绝了 worker 的写入。对象与 worker 读到的不同，保持不变。",
      "PUT refused": "服务器对 worker 的写入返回了错误。",
      "PUT failed": "worker 的写入失败了：{error}",
      "PUT token": "leader 用 fencing token {n} 写入，对象会保存这个 token。",
      "PUT fenced": "leader 用 fencing token {n} 的写入没有执行：{error}",
    },
    deltafifo: {
      Add: "{key} 的一个 delta 进入队列，等待 informer 取出。",
      "Add beside": "{key} 的一个 delta 进入队列，排在同一个 key 之前的 {n} 个 delta 后面。",
      Replace: "一份完整的列表进入队列。已知但不在列表里的对象会变成删除。",
      Resync: "resync 把已知的对象重新放进队列，不发任何请求。",
      Pop: "informer 取出 {key}：先改 store，再通知 handler。",
      "Pop many": "一次 Pop 取走 {key} 的全部 {n} 个 delta，从最早的开始：{types}。",
      "Pop list": "informer 取出 {key}，它来自一份列表，不是 watch 事件。",
      "Pop resync": "informer 因 resync 取出 {key}：还是 store 里的那个对象，不是变更。",
      "Pop all": "informer 取出一个涉及全部对象的条目：{types}。",
    },
    store: {
      Add: "store 里现在有 {key} 了，版本 {rv}。此后才通知 handler，所以 handler 去读 store 时，绝不会读到更旧的对象。",
      Update: "store 里的 {key} 现在是版本 {rv}。此后才通知 handler，所以 handler 去读 store 时，绝不会读到更旧的对象。",
      "Update replaces": "store 里 {key} 的版本 {old} 换成了版本 {rv}。此后才通知 handler，所以 handler 去读 store 时，绝不会读到更旧的对象。",
      "Update same": "store 再次收到 {key} 的版本 {rv}：它早已有这个版本。",
      Delete: "store 里不再有 {key}。此后才通知 handler。",
    },
    handler: {
      OnAdd: "handler 收到 {key}，对它来说是新对象。它应当只把 key 放进队列，否则后面的变更都得等着。",
      "OnAdd initial": "handler 收到 {key}，它属于首次列表。OnAdd 并不表示这个对象刚刚创建。",
      OnUpdate: "handler 收到 {key} 的旧对象和新对象。它应当只把 key 放进队列，否则后面的变更都得等着。",
      "OnUpdate replaces": "handler 收到 {key} 的旧对象（版本 {old}）和新对象（版本 {rv}）。它应当只把 key 放进队列，否则后面的变更都得等着。",
      "OnUpdate same": "OnUpdate 的旧对象和新对象都是版本 {rv}：什么都没变。这是 resync 或一份完整的列表再次送来的。",
      OnDelete: "handler 收到 {key} 最后的状态。和其他变更一样，它应当把 key 放进队列，reconcile 会发现对象已经不在了。",
      "OnDelete lost": "墓碑：{key} 的删除事件本身没有收到，是一份列表表明它已不存在。handler 拿到的是最后已知的状态。",
    },
    workqueue: {
      Add: "workqueue 收到的是 key {key}，不是对象。",
      "Add queued": "{key} 之前已经加入，还没有 worker 取走，所以什么也不会发生：多次变更合并成一次处理。",
      "Add again": "{key} 处于 `processing`：它只是变成 dirty，不会有第二个 worker 拿到它。只有 Done 才会让它重新排队。",
      AddAfter: "{key} 过一段时间再回来。",
      "AddAfter delay": "{key} 在 {delay} 后再回来。",
      AddRateLimited: "调用失败了。{key} 过一段时间再回来。",
      "AddRateLimited delay": "调用失败了，已连续失败 {n} 次。{key} 在“延时”一栏等待，{delay} 后再回来。",
      Get: "worker 拿到了 {key}。这个 key 现在处于 `processing`，其他 worker 不会再拿到它。",
      "Get merged": "{key} 加入了 {n} 次，worker 只取一次。它现在处于 `processing`，其他 worker 不会再拿到它。",
      "Get retry": "{key} 的延时到了：worker 取走它，做第 {n} 次尝试。",
      Forget: "Forget：不再记录 {key} 的失败次数。",
      "Forget success": "reconcile 成功了，所以 Forget 清除 {key} 的失败记录：之后若再失败，从第一次算起。",
      "Forget gaveUp": "这不是成功：reconcile 失败了，controller 放弃了 {key}。Forget 清除它的失败记录，在有新的变更之前不再重试。",
      Done: "Done：{key} 离开 `processing`。",
      "Done again": "Done：{key} 离开 `processing`。期间它又被加入过，所以重新排队。",
    },
    worker: {
      reconcile: "reconcile 得到的只有 key {key}。要看的是 store 里现在的对象，而不是那个事件。",
      "reconcile gone": "reconcile 得到 key {key}，而 store 里已经没有这个对象了。",
      "reconcile own": "store 里的 {key} 是版本 {version}，正是这个 controller 自己写入的。reconcile 再比较一次。",
      reconciled: "reconcile 返回了。",
      "reconciled wrote": "reconcile 写入了：{key} 现在是版本 {version}。这次写入会作为一次变更，经 watch 回来。",
      "reconciled nothing": "reconcile 什么都没有写。所以这次调用不会引起变更，循环到此结束。",
      "reconciled delay": "reconcile 返回了，并要求 {delay} 后再次调用。",
      "reconciled failed": "reconcile 返回了错误：{error}",
    },
  },
  plot: { title: { depth: "等待中", rate: "每秒事件数" }, window: "最近 {s} 秒", depth: "队列深度", backlog: "handler 积压", retries: "重试", perSecond: "事件/秒" },

  lessons: { title: "课程", intro: "每一课都有任务要你动手完成，用的就是本页的真实流水线。", none: "此程序没有课程。", steps: "{n} 步", done: "✓ 已完成", place: "第 {n} 课，共 {of} 课 · 第 {step} 步，共 {steps} 步", back: "上一步", next: "下一步", end: "完成", all: "全部课程", nextLesson: "下一课：{title}", task: "轮到你了：", taskThere: "在实验室里，请你来做：", taskDone: "✓ 完成：", taskShown: "✓ 已演示：", hint: "提示", solve: "演示给我看", where: "点击一张卡片。", pick: "在这里：{piece}", show: "显示答案", elsewhere: "程序已不在播放这一课：可能有另一个页面开始了别的课程。", here: "在这里继续", preparing: "正在为这一步准备流水线…", running: "流水线正在演示这一步…", notHere: "不在这里。", failed: "这一步没有成功。", again: "重新开始这一步" },
  stop: { title: "这一课停在这里", proceed: "继续", present: "回到当前", lookBack: "按 ← 看前一帧，再按 → 回到这里。", again: "再看一次停住的那一帧", seen: "这一课停在这里。" },
  code: {
    title: "自己写的代码", intro: "博文里常见的 controller 写法。高亮的一行是 key 当前所在的位置，竖线标出它经过的行。打开开关会改动那一行，正在运行的程序也随之改变。",
    next: "下一步：", outside: "不在这段代码里", off: "现在每一行都是正确的写法。",
    done: { name: "去掉 Done", ready: "修改一个对象：reconcile 返回之后，它的 key 仍然留在 `processing` 里。", stuck: "[[{key}]] 一直留在 `processing` 中：再也没有 worker 能取到它。", dirty: "[[{key}]] 一直留在 `processing` 中：虽然它是 dirty 的，却再也没有 worker 能取到它。" },
    forget: { name: "不调用 Forget", ready: "先让 reconcile 失败，再让它成功：`NumRequeues` 的数字不变，下一次失败要等得更久。" },
    add: { name: "改用 Add", ready: "让 reconcile 失败：失败的 key 会立刻重试，永不停止。它从不进入“延时”一栏，失败次数也不累计，还一直占着一个 worker。这里每次失败会多花 0.1 秒，否则这个循环会占满一个 CPU 核。" },
    slow: { name: "handler 变慢", ready: "多做一些修改：handler 每次调用要花一秒，积压越来越多。这些变更 store 里已经有了，WorkQueue 里却还没有；另一个 handler 不受影响。" },
  },
  help: { title: "快捷键与操作", intro: "每个操作都有快捷键。点击名称即可执行。", list: "Tab 键到达每个 key 列表，方向键在列表内移动，Enter 键跟踪一个 key。" },
  settings: { title: "设置", intro: "应用新的设置会在同一个服务器上重新搭建流水线。", queue: "Delta 队列", list: "首次全量获取", fifo: "先进先出", fair: "公平：各 namespace 轮流", workers: "数量", workMs: "每个 key 的处理时间（毫秒）", workload: "负载", rate: "每秒变更数", objects: "对象数", faults: "请求和 watch 随机失败" },

  action: {
    run: { name: "运行或暂停", help: "让所有变更停在原处，或继续前进。" },
    step: { name: "单步", help: "只放行一跳。" },
    back: { name: "回看", help: "显示上一帧；程序继续运行。" },
    live: { name: "回到当前", help: "重新显示正在运行的程序。" },
    slower: { name: "更慢", help: "每一跳用更多时间。" },
    faster: { name: "更快", help: "每一跳用更少时间。" },
    create: { name: "创建", help: "在服务器上创建一个对象。" },
    change: { name: "修改", help: "修改正在跟踪的对象，或任意一个。" },
    delete: { name: "删除", help: "删除正在跟踪的对象，或任意一个。" },
    compact: { name: "压缩", help: "服务器丢弃旧的 resourceVersion（compact）。" },
    define: { name: "定义", help: "创建 Widget 的 CustomResourceDefinition，或者把它连同对象一起删除。" },
    server: { name: "停机", help: "停止服务器，或重新启动。" },
    workload: { name: "负载", help: "持续修改对象，或停止。" },
    cut: { name: "断开", help: "断开 watch 的连接。" },
    stall: { name: "卡住", help: "watch 保持打开，但不再发送任何事件。" },
    expire: { name: "过期", help: "以 410 Gone 结束 watch。" },
    watchList: { name: "WatchList", help: "用流式方式代替 LIST 获取全量数据。" },
    namespace: { name: "batch", help: "把 namespace batch 加入 informer，或者移除它。" },
    queue: { name: "RealFIFO", help: "用 RealFIFO 代替 DeltaFIFO。" },
    resync: { name: "Resync", help: "把 store 的内容重新通知给 handler，不发送请求。" },
    own: { name: "Owner", help: "在服务器上给所跟踪的对象换 owner：web、db、两者、没有。" },
    shutdown: { name: "ShutDown", help: "关闭 workqueue，或重新启动程序。" },
    fair: { name: "公平", help: "让 workqueue 中的各个 namespace 轮流取 key；程序会重新启动。" },
    slow: { name: "变慢", help: "让最后一个 handler 变慢，或恢复。" },
    panic: { name: "Panic", help: "让最后一个 handler panic 一次。" },
    fail: { name: "失败", help: "让 reconcile 返回错误。" },
    hang: { name: "卡死", help: "让 reconcile 耗时很长。" },
    conflict: { name: "冲突", help: "让 reconcile 的写入发生冲突（409）。" },
    noted: { name: "记录写入", help: "记录 worker 的写入：发生 Conflict 之后，key 等待更新的副本；程序会重新启动。" },
    kill: { name: "杀死", help: "杀死 leader；它的租约需要等到过期。" },
    release: { name: "释放", help: "让 leader 停下，它会先清空 holderIdentity。" },
    isolate: { name: "断开", help: "让 leader 与服务器断开，或恢复连接。" },
    freeze: { name: "冻结", help: "冻结 leader 进程，或让它继续。" },
    settings: { name: "设置", help: "队列、全量获取、worker、负载。" },
    lessons: { name: "课程", help: "显示课程。" },
    search: { name: "查找 key", help: "在全部对象中查找一个 key 并跟踪它。" },
    code: { name: "代码", help: "显示一个 controller 的代码。" },
    events: { name: "事件", help: "以文字显示事件。" },
    unfollow: { name: "显示全部 key", help: "停止跟踪。" },
    theme: { name: "浅色或深色", help: "切换浅色与深色。" },
    language: { name: "English", help: "切换中文与英文。", icon: "EN" },
    help: { name: "帮助", help: "显示此列表。" },
  },

  piece: {
    time: { name: "时间控制" }, page: { name: "页面" },
    server: {
      name: "API Server", title: "API Server",
      what: "服务器保存所有写入的日志，每次写入得到下一个 `resourceVersion`。LIST 返回某个版本时的状态，WATCH 发送某个版本之后的所有变更。",
      laws: ["resourceVersion 单调递增，不同的写入不会相同。", "从版本 N 开始的 watch 会送达 N 之后的所有变更；如果这些变更已被压缩，则以 410 结束。"],
      mistake: "不同资源的 resourceVersion 不能比较，客户端也不应该对它做计算。",
    },
    reflector: {
      name: "Reflector", title: "Reflector",
      what: "Reflector 让 store 与服务器上的集合保持一致：先 LIST 一次，记下列表的 `resourceVersion`，再从这里开始 WATCH。断开的 watch 会从原处继续；过期的 watch 会导致重新 LIST。",
      laws: ["R1：最后一个 resourceVersion 及之前的所有变更都已交给 store，重新 LIST 不会请求更旧的状态。", "R2：处于 Watching 或 Streaming 阶段时恰好有一个打开的 watch，其他阶段没有。"],
      mistake: "relist 是出错后重新请求全部数据；resync 不发送任何请求，只是把 store 中已有的对象重放一遍。",
    },
    queue: {
      name: "Delta 队列", title: "DeltaFIFO 与 RealFIFO",
      what: "队列连接网络与 store，使两者互不等待。DeltaFIFO 按 key 排队，保存每个 key 自上次 Pop 以来的全部变更；RealFIFO 按到达顺序逐个保存变更。",
      laws: ["D1：key 在 items 中，当且仅当它在队列中，且只出现一次。", "D2：排队的 key 至少有一个 delta。", "D3：同一个 key 不会有两个相邻的 Deleted。"],
      mistake: "只有相邻的删除会合并。两次更新仍是两个 delta。",
    },
    store: {
      name: "Store", title: "Store 与索引",
      what: "Store 是本地副本：以 key 查找对象。索引可以直接回答“这个命名空间里有哪些对象？”，不必逐个查看。",
      laws: ["S1：对象在索引的某个值之下，当且仅当索引函数由该对象算出这个值。", "S2：索引中没有空的集合。"],
      mistake: "Store 可能比你自己刚写入的内容还旧：它与服务器只是最终一致。",
    },
    handlers: {
      name: "Handler", title: "变更日志与 handler",
      what: "Store 变化之后，变更会追加到同一份日志。每个 handler 在自己的 goroutine 里按自己的速度读取，尚未读取的部分就是它的积压（backlog）。",
      laws: ["L1：handler 只由一个 goroutine 调用，一次一个，按变更的顺序。", "D2：先更新 store，再发出变更，所以 handler 不会从 store 读到更旧的对象。"],
      mistake: "OnAdd 并不表示“刚创建”。启动时已存在的对象都以 OnAdd 到达，后加入的 handler 还会再收到一遍。",
    },
    workqueue: {
      name: "WorkQueue", title: "WorkQueue",
      what: "handler 加入 key，worker 取出 key。`dirty` 是需要处理的 key，`processing` 是 worker 正在处理的 key，queue 决定取出的顺序。失败的 key 在堆中等待，到期后重新入队。",
      laws: ["Q1：items 恰好包含 dirty、processing 或两者兼有的 key。", "Q2：queue 恰好包含 dirty 且不在 processing 中的 key，每个一次。"],
      mistake: "`Forget` 只清零失败次数，不能代替 `Done`；不调用 `Done`，这个 key 就再也不会被取出。",
    },
    workers: {
      name: "Worker", title: "Controller 与 worker",
      what: "Worker 取出一个 key，调用 reconcile，再调用 Done。reconcile 读取当前状态并据此行动；它的写入到达服务器后又作为变更返回。被放弃的 key 成为死信（dead letter）。",
      laws: ["C1：同一个 key 不会同时有两次 reconcile 调用。", "C2：一个 key 最后一次变更之后，至少还会再 reconcile 一次。", "C3：失败的调用会重试，直到成功或该 key 被放弃。"],
      mistake: "key 只说明有东西变了，不说明变了什么。一次 reconcile 可以处理多个变更。",
    },
    election: {
      name: "选主", title: "选主（leader election）",
      what: "多个进程同时运行，只有一个工作。服务器上的 Lease 记录谁是 leader，leader 定期续期。候选者按自己的时钟在整个租期内都没有看到续期，才会接管租约。",
      laws: ["E1：只有当被替换的记录属于自己、没有持有者，或按自己的时钟在整个租期内没有变化时，才会写入租约。", "E3：每次 OnStartedLeading 之后，OnStoppedLeading 恰好调用一次。"],
      mistake: "被冻结的 leader 恢复后可能仍以为自己是 leader。fencing token 让服务器可以拒绝它迟到的写入。",
    },
  },
};
return { default: exported };
})();

modules["text.js"] = (() => {
// SPDX-License-Identifier: Apache-2.0

/** The page's texts in the reader's language. */
const { default: en } = modules["messages.en.js"];
const { default: zh } = modules["messages.zh.js"];

const messages = { en, zh };
let language = "en";

/** initialLanguage is that of the address, the remembered one, or the browser's, if the page has it. */
function initialLanguage(asked) {
  const wishes = [asked, remembered("language"), (navigator.language || "en").slice(0, 2)];
  return wishes.find((wish) => messages[wish]) ?? "en";
}

/** setLanguage makes t return texts of a language. */
function setLanguage(choice) {
  language = choice;
  document.documentElement.lang = choice === "zh" ? "zh-Hans" : "en";
  document.title = t("title");
  remember("language", choice);
}

/**
 * t returns the message at a path such as "card.store.name", with {name} replaced by the
 * argument of that name, and {+s} by the plural's "s" unless {n} is 1. A message that a language
 * lacks is shown in English.
 */
function t(path, args) {
  const text = lookup(messages[language], path) ?? lookup(en, path) ?? path;
  return typeof text === "string" ? filled(text, args) : text;
}

/** filled puts arguments into a text, as t does. */
function filled(text, args) {
  if (args?.n !== undefined) text = text.replaceAll("{+s}", String(args.n) === "1" ? "" : "s");
  for (const name in args) text = text.replaceAll(`{${name}}`, () => String(args[name]));
  return text;
}

/** named is the message of a name that the program sent, or the name itself if there is none. */
const named = (group, name) => lookup(messages[language], `${group}.${name}`) ?? name ?? "";

function lookup(tree, path) {
  return path.split(".").reduce((node, name) => node?.[name], tree);
}

/** local picks the page's language from a text that the program sent as {en, zh}. */
function local(text) {
  if (text == null || typeof text === "string") return text ?? "";
  return text[language] ?? text.en ?? "";
}

/** translated is the path of a document in the page's language. */
function translated(path) {
  if (language !== "zh") return path;
  if (path === "docs/README.md") return "docs/zh/docs.md"; // zh/README.md is that of the repository
  return path.replace(/^docs\//, "docs/zh/");
}

/** remembered reads a setting of an earlier visit; a browser may forbid it. */
function remembered(name) {
  try {
    return localStorage.getItem("informerstack." + name);
  } catch {
    return null;
  }
}

/** remember stores a setting for the next visit. */
function remember(name, value) {
  try {
    localStorage.setItem("informerstack." + name, value);
  } catch {
    // The page works without it.
  }
}
return { initialLanguage, setLanguage, t, filled, named, local, translated, remembered, remember };
})();

modules["actions.js"] = (() => {
// SPDX-License-Identifier: Apache-2.0

/**
 * Actions: everything that a reader can do to the program, each with its key.
 *
 * An action belongs to a piece, and its button is in the footer of that piece's card; an action of
 * piece "time" is in the header, and one of piece "page" never leaves the browser. command returns
 * what is sent; active reports whether the button is to appear pressed, and when, whether it is
 * there.
 */
const { html, cx } = modules["html.js"];
const { t } = modules["text.js"];

/** SLOW_HANDLER_MS is the delay per call of a handler that was slowed down. */
const SLOW_HANDLER_MS = 1000;

const settings = (lab) => lab.frame?.settings ?? {};
const lastHandler = (lab) => lab.frame?.handlers?.at(-1) ?? {};
const leader = (lab) => lab.frame?.election ?? {};
const namespaces = (lab) => lab.frame?.reflector?.namespaces?.map(({ name }) => name);
const custom = (lab) => lab.frame?.reflector?.kind;
const fault = (kind) => ({
  active: (lab) => lab.frame?.workers?.fault === kind,
  command: (lab) => {
    const off = lab.frame?.workers?.fault === kind;
    return { do: "reconcile", fault: off ? "none" : kind };
  },
});
/** nextMode is what the run key does: pause, or continue as fast as before. */
const nextMode = (lab) =>
  lab.frame?.mode !== "pause" ? "pause" : lab.ui.delayMs > 0 ? "slow" : "run";
const followed = (lab) => (lab.ui.follow ? { key: lab.ui.follow } : {});

const ACTIONS = [
  {
    id: "run", key: " ", piece: "time",
    command: (lab) => ({ do: "mode", mode: nextMode(lab), delayMs: lab.ui.delayMs }),
  },
  { id: "step", key: ".", piece: "time", command: () => ({ do: "step" }) },
  { id: "back", key: "ArrowLeft", piece: "time", local: (lab) => lab.lookBack(-1) },
  { id: "live", key: "End", piece: "time", local: (lab) => lab.toPresent() },
  { id: "slower", key: "[", piece: "time", local: (lab) => lab.changeSpeed(+1) },
  { id: "faster", key: "]", piece: "time", local: (lab) => lab.changeSpeed(-1) },

  { id: "create", key: "n", piece: "server", writes: true, command: () => ({ do: "create" }) },
  {
    id: "change", key: "u", piece: "server", writes: true,
    command: (lab) => ({ do: "change", ...followed(lab) }),
  },
  {
    id: "delete", key: "d", piece: "server", writes: true,
    command: (lab) => ({ do: "delete", ...followed(lab) }),
  },
  { id: "compact", key: "k", piece: "server", writes: true, command: () => ({ do: "compact" }) },
  {
    id: "server", key: "x", piece: "server", writes: true,
    active: (lab) => lab.frame?.server?.up === false,
    command: (lab) => ({ do: "server", up: lab.frame?.server?.up === false }),
  },
  {
    id: "define", key: "5", piece: "server", writes: true, when: custom,
    active: (lab) => custom(lab)?.phase === "serving",
    command: (lab) => ({ do: "define", on: custom(lab)?.phase !== "serving" }),
  },
  {
    id: "workload", key: "a", piece: "server", writes: true,
    active: (lab) => settings(lab).rate > 0,
    command: (lab) => ({
      do: "workload", rate: settings(lab).rate > 0 ? 0 : 5, objects: settings(lab).objects || 20,
    }),
  },

  ...["cut", "stall", "expire"].map((kind, i) => ({
    id: kind, key: "cte"[i], piece: "reflector", writes: true,
    active: (lab) => lab.frame?.server?.fault === kind,
    command: () => ({ do: "watch", fault: kind }),
  })),
  {
    id: "watchList", key: "w", piece: "reflector", writes: true,
    active: (lab) => settings(lab).watchList === true,
    command: (lab) => ({ do: "settings", watchList: !settings(lab).watchList }),
  },

  {
    id: "namespace", key: "6", piece: "reflector", writes: true, when: namespaces,
    active: (lab) => namespaces(lab).includes("batch"),
    command: (lab) => ({
      do: "namespaces", names: namespaces(lab).includes("batch")
        ? namespaces(lab).filter((name) => name !== "batch") : [...namespaces(lab), "batch"],
    }),
  },

  {
    id: "queue", key: "q", piece: "queue", writes: true,
    active: (lab) => lab.frame?.queue?.kind === "RealFIFO",
    command: (lab) => ({
      do: "settings", queue: lab.frame?.queue?.kind === "RealFIFO" ? "deltafifo" : "realfifo",
    }),
  },
  { id: "resync", key: "r", piece: "store", writes: true, command: () => ({ do: "resync" }) },
  {
    id: "own", key: "m", piece: "store", writes: true,
    command: (lab) => ({ do: "own", key: lab.ui.follow || lab.frame?.store?.items?.[0]?.key }),
  },

  {
    id: "slow", key: "h", piece: "handlers", writes: true,
    active: (lab) => lastHandler(lab).delayMs > 0,
    command: (lab) => ({
      do: "handler", name: lastHandler(lab).name,
      delayMs: lastHandler(lab).delayMs > 0 ? 0 : SLOW_HANDLER_MS,
    }),
  },
  {
    id: "panic", key: "p", piece: "handlers", writes: true,
    command: (lab) => ({ do: "handler", name: lastHandler(lab).name, panic: true }),
  },

  {
    id: "shutdown", key: "s", piece: "workqueue", writes: true,
    active: (lab) => lab.frame?.workqueue?.shutDown != null,
    command: (lab) => ({ do: lab.frame?.workqueue?.shutDown ? "restart" : "shutdown" }),
  },
  {
    id: "fair", key: "3", piece: "workqueue", writes: true,
    active: (lab) => settings(lab).fair === true,
    command: (lab) => ({ do: "settings", fair: !settings(lab).fair }),
  },

  { id: "fail", key: "f", piece: "workers", writes: true, ...fault("fail") },
  { id: "hang", key: "g", piece: "workers", writes: true, ...fault("hang") },
  { id: "conflict", key: "o", piece: "workers", writes: true, ...fault("conflict") },
  {
    id: "noted", key: "4", piece: "workers", writes: true,
    active: (lab) => settings(lab).noted === true,
    command: (lab) => ({ do: "settings", noted: !settings(lab).noted }),
  },

  {
    id: "kill", key: "l", piece: "election", writes: true,
    command: () => ({ do: "leader", fault: "kill" }),
  },
  {
    id: "release", key: "1", piece: "election", writes: true,
    command: () => ({ do: "leader", fault: "release" }),
  },
  {
    id: "isolate", key: "2", piece: "election", writes: true,
    active: (lab) => leader(lab).cutNames?.length > 0,
    command: (lab) => ({ do: "leader", fault: leader(lab).cutNames?.length ? "resume" : "cut" }),
  },
  {
    id: "freeze", key: "y", piece: "election", writes: true,
    active: (lab) => leader(lab).paused === true,
    command: (lab) => ({ do: "leader", fault: leader(lab).paused ? "resume" : "pause" }),
  },

  {
    id: "settings", key: ",", piece: "page", writes: true,
    local: (lab) => lab.set({ dialog: "settings" }),
  },
  { id: "lessons", key: "j", piece: "page", local: (lab) => lab.set({ tab: "lessons" }) },
  {
    id: "search", key: "/", piece: "page",
    local: (lab) => {
      lab.set({ tab: "events" });
      lab.focus("#search");
    },
  },
  { id: "code", key: "i", piece: "page", local: (lab) => lab.set({ tab: "code" }) },
  { id: "events", key: "v", piece: "page", local: (lab) => lab.set({ tab: "events" }) },
  { id: "unfollow", key: "Escape", piece: "page", local: (lab) => lab.follow("") },
  { id: "theme", key: "b", piece: "page", local: (lab) => lab.toggleTheme() },
  { id: "language", key: "z", piece: "page", local: (lab) => lab.toggleLanguage() },
  { id: "help", key: "?", piece: "page", local: (lab) => lab.set({ dialog: "help" }) },
];

const action = (id) => ACTIONS.find((a) => a.id === id);

/** offered reports whether the page shows an action: not those that the program would refuse. */
function offered(lab, a) {
  if (a.when && !a.when(lab)) return false;
  if (a.piece === "page") return !a.writes || (lab.source.live && lab.model.hello?.writable);
  if (!lab.source.live) return false;
  return !a.writes || lab.model.hello?.writable === true;
}

/** perform runs an action: in the page, or by a command. */
function perform(lab, a) {
  if (a.local) return a.local(lab);
  lab.toPresent(); // a command concerns what the program does now
  lab.send(a.command(lab));
}

/** keyName is what a key is called on the page. */
const keyName = (key) => t("key")[key] ?? key;

/** ActionButton is the button of one action, with its key. */
function ActionButton({ lab, id, label }) {
  const a = action(id);
  if (!offered(lab, a)) return null;
  const pressed = a.active?.(lab);
  return html`<button type="button" class=${cx("btn", pressed && "on")}
    disabled=${!a.local && lab.ui.connection !== "connected"}
    aria-pressed=${a.active ? pressed === true : undefined}
    aria-keyshortcuts=${a.key === " " ? "Space" : a.key}
    title=${t(`action.${id}.help`)}
    onClick=${() => perform(lab, a)}>
    ${label ?? t(`action.${id}.name`)} <kbd>${keyName(a.key)}</kbd>
  </button>`;
}

/** ActionBar is the footer of a card: the actions of its piece. */
function ActionBar({ lab, piece }) {
  const actions = ACTIONS.filter((a) => a.piece === piece && offered(lab, a));
  if (!actions.length) return null;
  return html`<div class="bar" role="group" aria-label=${t("bar", { piece: t(`piece.${piece}.name`) })}>
    ${actions.map((a) => html`<${ActionButton} key=${a.id} lab=${lab} id=${a.id} />`)}
  </div>`;
}
return { ACTIONS, action, offered, perform, keyName, ActionButton, ActionBar };
})();

modules["key.js"] = (() => {
// SPDX-License-Identifier: Apache-2.0

/** Keys: their colours, their short names, and the chip that shows one. */
const { html, cx } = modules["html.js"];
const { t } = modules["text.js"];

/** The palette has this many colours; style.css defines .k0 to .k9. */
const COLOURS = 10;

/**
 * colourOf returns the class of a key's colour. It is a hash (FNV-1a), so a key has the same
 * colour in every run and in every recording.
 */
function colourOf(key) {
  let hash = 0x811c9dc5;
  for (let i = 0; i < key.length; i++) {
    hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193) >>> 0;
  }
  return "k" + ((hash ^ (hash >>> 13)) >>> 0) % COLOURS;
}

/** shortName is the key without its namespace. */
const shortName = (key) => key.slice(key.lastIndexOf("/") + 1);

/**
 * Chip shows a key as a coloured button. keyboard.js listens for clicks on all of them. Only the
 * first chip of a list is a tab stop; the arrow keys reach the others.
 *
 * A name that is too long loses its beginning, because names often differ at the end. For this the
 * chip is written from right to left, and the name in it from left to right.
 */
function Chip({ id, follow, full, first, priority }) {
  const colour = colourOf(id);
  const off = follow && follow !== id;
  const low = priority < 0;
  return html`<button type="button" data-key=${id}
    title=${low ? `${id}: ${t("workqueue.priority", { priority })}` : id}
    class=${cx("chip", colour, off && "off", follow === id && "followed")}
    tabindex=${first || follow === id ? 0 : -1}
    aria-pressed=${follow === id}
    aria-label=${t("chip.follow", { key: id })}>
    <bdi dir="ltr">${full ? id : shortName(id)}${low && "↓"}</bdi></button>`;
}

/** Chips shows a list of keys in one line, or a dash. priorities has those of keys. */
function Chips({ keys, total, follow, short, priorities }) {
  if (!keys?.length) return html`<span class="none">–</span>`;
  const more = (total ?? keys.length) - keys.length;
  return html`<span class="chips">
    ${keys.map((key, i) => html`<${Chip} key=${key} id=${key} follow=${follow} first=${i === 0}
      priority=${priorities?.[key]} />`)}
    ${more > 0 && html`<span class="dim">
      ${short ? "+" + number(more) : t("more", { n: number(more) })}</span>`}
  </span>`;
}

const formats = {}; // to make one takes longer than to use it a hundred times

/** number writes an integer with the separators of the page's language, or in a compact notation. */
function number(n, notation = "standard") {
  const language = document.documentElement.lang || "en";
  formats[language + notation] ??= new Intl.NumberFormat(language, { notation });
  return formats[language + notation].format(n ?? 0);
}

/** duration writes milliseconds in the unit that fits. */
function duration(ms) {
  if (ms == null || Number.isNaN(ms)) return "–";
  if (ms === 0) return "0 ms";
  if (ms < 1) return Math.max(0, Math.round(ms * 1000)) + " µs";
  if (ms < 10) return ms.toFixed(1) + " ms";
  if (ms < 1000) return Math.round(ms) + " ms";
  if (ms < 60_000) return (ms / 1000).toFixed(1) + " s";
  const seconds = Math.floor(ms / 1000);
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}
return { colourOf, shortName, Chip, Chips, number, duration };
})();

modules["prose.js"] = (() => {
// SPDX-License-Identifier: Apache-2.0

/** Prose: texts with code and keys in them, and links to the repository. */
const { html } = modules["html.js"];
const { Chip } = modules["key.js"];
const { local } = modules["text.js"];

/**
 * Prose shows a text with two kinds of markup: `code`, and [[default/web]] for a key. Everything
 * is rendered as text, so nothing in it can become HTML.
 */
function Prose({ text, follow }) {
  return local(text).split(/(`[^`]+`|\[\[[^\]]+\]\])/).map((part) => {
    if (part.startsWith("`")) return html`<code>${part.slice(1, -1)}</code>`;
    if (part.startsWith("[[")) return html`<${Chip} id=${part.slice(2, -2)} follow=${follow} first />`;
    return part;
  });
}

/** Path links to a file of the repository. A page that may be anywhere names it. */
function Path({ lab, path, text = path }) {
  if (!lab.files) return html`<code>${text}</code>`;
  return html`<a href=${lab.files + path} target="_blank" rel="noreferrer"><code>${text}</code></a>`;
}
return { Prose, Path };
})();

modules["stop.js"] = (() => {
// SPDX-License-Identifier: Apache-2.0

/**
 * Stops: a lesson stops at its decisive frame, with a sentence about it, until the reader continues.
 * The reader can look back at that frame later.
 */
const { html } = modules["html.js"];
const { action, keyName, perform } = modules["actions.js"];
const { Chip } = modules["key.js"];
const { Prose } = modules["prose.js"];
const { named, remember, remembered, t } = modules["text.js"];

/** stopOf is the stop of the frame on the page, or null. */
const stopOf = ({ frame }) => frame?.lesson?.stop ?? null;

/** proceed continues after a stop, or leads from an earlier stop back to the present. */
function proceed(lab) {
  remember("lookedBack", "yes");
  lab.focus(".lesson .steps .primary"); // the button is removed
  if (lab.past) lab.toPresent();
  else if (lab.source.live) perform(lab, action("run"));
  else lab.source.play();
}

/** reveal scrolls to a stop, and each list to its first row of the followed key: the newest one of the log. */
function reveal(stop) {
  stop?.scrollIntoView({ block: "nearest" });
  for (const list of stop ? document.querySelectorAll("#flow .rows") : []) {
    const chip = list.querySelector(".followed")?.getBoundingClientRect();
    const { top, bottom } = list.getBoundingClientRect();
    if (chip && (chip.top < top || chip.bottom > bottom)) list.scrollTop += chip.bottom - bottom;
  }
}

/** Stop says what the frame of a stop shows, and continues. The first one asks to look back. */
function Stop({ lab }) {
  const { says, event } = stopOf(lab);
  const asks = lab.source.live && !lab.past && !remembered("lookedBack");
  return html`<section ref=${reveal} class="caption stop" aria-label=${t("stop.title")}>
    <div role="status">${says ? html`<${Prose} text=${says} follow=${lab.ui.follow} />`
      : html`<${Seen} event=${event} follow=${lab.ui.follow} />`}</div>
    <p><button type="button" class="btn primary" aria-keyshortcuts=${lab.past ? "End" : "Space"}
        onClick=${() => proceed(lab)}>${t(lab.past ? "stop.present" : "stop.proceed")}${" "}
        <kbd>${keyName(lab.past ? "End" : " ")}</kbd></button>
      ${asks && html` <span class="dim">${t("stop.lookBack")}</span>`}</p>
  </section>`;
}

/** Seen names the event of a frame that does not prove its sentence. */
function Seen({ event, follow }) {
  if (!event) return t("stop.seen");
  return html`<b>${named("hop", event.hop)} ${event.what}</b>
    ${event.key && html` <${Chip} id=${event.key} follow=${follow} first />`}
    ${event.rv && html` <span class="rv">@${event.rv}</span>`} ${event.detail} ${event.error}`;
}

/** Again leads back to the last stop of the present step. */
function Again({ lab, lesson }) {
  const at = stopOf(lab) ? -1 : lab.stopBefore(lesson.id, lab.ui.lesson.step);
  if (at < 0) return null;
  return html`<p><button type="button" class="btn quiet again" onClick=${() => lab.lookAt(at)}>
    ← ${t("stop.again")}</button></p>`;
}
return { stopOf, proceed, Stop, Again };
})();

modules["lessons.js"] = (() => {
// SPDX-License-Identifier: Apache-2.0

/**
 * Lessons: a list, and the lesson that is being played.
 *
 * A step without a question is played when the reader arrives at it. A step with a question is
 * played when the reader has found the answer: until then the page shows nothing that gives it away.
 * In a step with a task, the program prepares, and then the reader acts until its checks hold.
 */
const { html, cx } = modules["html.js"];
const { Path, Prose } = modules["prose.js"];
const { Again, proceed, stopOf } = modules["stop.js"];
const { local, named, remember, remembered, t, translated } = modules["text.js"];

function Lessons({ lab }) {
  const lesson = lab.lessons.find((l) => l.id === lab.ui.lesson?.id);
  return lesson ? html`<${Lesson} lab=${lab} lesson=${lesson} />` : html`<${List} lab=${lab} />`;
}

/** SHOWN is the choice of a reader who has asked for the answer. */
const SHOWN = -1;

/** ANSWER_MS is how long the program may take until a frame tells that it plays a step. */
const ANSWER_MS = 2000;

/** finished returns the ids of the lessons that the reader has completed in this browser. */
const finished = () => (remembered("lessons") || "").split(" ").filter(Boolean);

/** complete remembers that the reader has come to the end of a lesson. */
function complete({ id }) {
  const ids = finished();
  if (!ids.includes(id)) remember("lessons", [...ids, id].join(" "));
}

function List({ lab }) {
  const done = finished();
  return html`<article class="lessons">
    <h2 tabindex="-1">${t("lessons.title")}</h2>
    <p class="dim">${lab.lessons.length ? t("lessons.intro") : t("lessons.none")}</p>
    <ol>${lab.lessons.map((lesson) => html`<li key=${lesson.id}>
      <button type="button" onClick=${() => begin(lab, lesson)}>
        <span>${local(lesson.title)}</span>
        <small>${done.includes(lesson.id)
          ? t("lessons.done") : t("lessons.steps", { n: lesson.steps.length })}</small>
      </button></li>`)}</ol>
  </article>`;
}

/** begin opens a lesson at its first step. seed shuffles the options, until the lesson is opened again. */
function begin(lab, lesson) {
  if (lesson.follow) lab.follow(lesson.follow);
  lab.set({ lesson: { id: lesson.id, step: 0, played: -1, choice: null, seed: Math.random() }, tab: "lessons" });
  lab.focus(".lesson h2");
  if (lesson.steps[0].question) prepare(lab, lesson);
  play(lab, lesson);
}

/** prepare makes the pipeline ready for the question of the present step. */
function prepare(lab, lesson) {
  const { step } = lab.ui.lesson;
  lab.set({ lesson: { ...lab.ui.lesson, sentAt: performance.now() } });
  if (lab.source.live) lab.send({ do: "lesson", id: lesson.id, step: step - 1, solved: true });
}

/**
 * openAt opens a lesson at a step: an address leads there, or the page was loaded again. The program
 * plays the steps before it first, unless it is there already.
 */
function openAt(lab, id, step) {
  const lesson = lab.lessons.find((l) => l.id === id);
  if (!lesson?.steps) return false;
  const at = Math.min(step, lesson.steps.length - 1);
  const there = lab.model.newest?.lesson;
  const played = there?.id === id && there.step === at ? at : -1;
  const choice = played === at ? SHOWN : null;
  if (lesson.follow) lab.follow(lesson.follow);
  lab.set({ lesson: { id, step: at, played, choice, seed: Math.random() }, tab: "lessons" });
  const asks = lesson.steps[at].question && choice == null;
  const ready = there?.id === id && there.step === at - 1;
  if (asks && !ready) prepare(lab, lesson);
  play(lab, lesson);
  return true;
}

/** openFirst opens the first lesson, the first time that this browser shows the page. */
function openFirst(lab) {
  if (remembered("opened") || !lab.lessons.length) return;
  remember("opened", "yes");
  begin(lab, lab.lessons[0]);
}

/** alone reports whether the lesson shows its own object only. */
const alone = (lab) =>
  lab.lessons.find((lesson) => lesson.id === lab.ui.lesson?.id)?.alone === true;

/** turn is the arrow key of a teacher: it shows an answer, a solution, or another step. */
function turn(lab, by) {
  const lesson = lab.lessons.find((l) => l.id === lab.ui.lesson?.id);
  if (!lesson) return false;
  const { step, choice } = lab.ui.lesson;
  if (by > 0 && lesson.steps[step].question && choice == null) answer(lab, lesson, SHOWN);
  else if (by > 0 && stopOf(lab)) proceed(lab);
  else if (by > 0 && !ended(lab, lesson)) solve(lab, lesson);
  else if (lesson.steps[step + by]) goTo(lab, lesson, step + by);
  return true;
}

/** yours reports whether the program waits for the reader to do the task of the present step. */
function yours(lab, lesson) {
  const state = lab.frame?.lesson;
  return state?.id === lesson.id && state.step === lab.ui.lesson.step && state.state === "yours";
}

/** solve makes the program do the task. */
function solve(lab, lesson) {
  if (yours(lab, lesson)) lab.send({ do: "solve" });
}

/** goTo shows another step. A step that was played before is only shown. */
function goTo(lab, lesson, step) {
  const now = lab.ui.lesson;
  lab.set({ lesson: { ...now, step, hint: false, tried: [], choice: step <= now.played ? SHOWN : null } });
  play(lab, lesson);
  lab.focus(".lesson h2"); // the button of this step may be disabled in the next
}

/** play makes the program play the present step, unless its question is still open. */
function play(lab, lesson) {
  const { step, played, choice } = lab.ui.lesson;
  if (step <= played || (lesson.steps[step].question && choice == null)) return;
  lab.set({ lesson: { ...lab.ui.lesson, played: step, sentAt: performance.now() } });
  lab.send({ do: "lesson", id: lesson.id, step });
}

/** again begins a step anew that the program could not play: it plays the steps before it first. */
function again(lab, lesson) {
  lab.set({ lesson: { ...lab.ui.lesson, sentAt: performance.now() } });
  lab.send({ do: "lesson", id: lesson.id, step: lab.ui.lesson.step });
}

/**
 * leave returns to the list and ends the lesson: the program restores its settings. The static
 * edition has a page for the list.
 */
function leave(lab) {
  if (lab.source.lesson) return location.assign("index.html");
  if (alone(lab)) lab.follow("");
  lab.set({ lesson: null });
  lab.send({ do: "lesson", id: "" });
  lab.focus(".lessons h2");
}

/** ended reports whether the program has played the present step to its end. */
function ended(lab, lesson) {
  const state = lab.frame?.lesson;
  if (state?.id !== lesson.id) return false;
  const { step } = lab.ui.lesson;
  return state.step > step || (state.step === step && state.state === "done");
}

/** answer takes a choice. A wrong one is only noted: the reader tries again. */
function answer(lab, lesson, choice) {
  const { question } = lesson.steps[lab.ui.lesson.step];
  if (choice !== SHOWN && choice !== question.where && !question.options?.[choice]?.right) {
    const tried = (lab.ui.lesson.tried ?? []).filter((other) => other !== choice);
    return lab.set({ lesson: { ...lab.ui.lesson, tried: [...tried, choice] } });
  }
  lab.set({ lesson: { ...lab.ui.lesson, choice } });
  lab.focus(".lesson .steps .primary"); // the options are disabled
  play(lab, lesson);
}

/** asking returns the lesson if the question of its present step is open, or null. */
function asking(lab) {
  const lesson = lab.lessons.find((l) => l.id === lab.ui.lesson?.id);
  return lesson?.steps[lab.ui.lesson.step].question && lab.ui.lesson.choice == null ? lesson : null;
}

/**
 * predicting returns what a click on a card answers, and which cards were tried, while a question
 * asks for a card, or null.
 */
function predicting(lab) {
  const lesson = asking(lab);
  if (!lesson?.steps[lab.ui.lesson.step].question.where) return null;
  return { choose: (piece) => answer(lab, lesson, piece), tried: lab.ui.lesson.tried ?? [] };
}

/**
 * pointed returns the pieces that the lesson points to, or nothing while its question is open, or while
 * the program plays another step.
 */
function pointed(lab) {
  const state = lab.frame?.lesson;
  const { lesson } = lab.ui;
  const other = lesson?.id === state?.id && lesson?.step !== state?.step;
  return asking(lab) || other ? [] : (state?.watch ?? []);
}

function Lesson({ lab, lesson }) {
  const { step, choice } = lab.ui.lesson;
  const now = lesson.steps[step];
  const open = now.question && choice == null;
  if (step === lesson.steps.length - 1 && ended(lab, lesson)) complete(lesson);
  if (lab.source.lesson) document.title = local(lesson.title); // the page of this lesson alone
  const place = {
    n: lab.lessons.indexOf(lesson) + 1, of: lab.lessons.length,
    step: step + 1, steps: lesson.steps.length,
  };
  const prose = (text) => html`<p class="text"><${Prose} text=${text} follow=${lab.ui.follow} /></p>`;
  return html`<article class="lesson">
    <p class="dim">${t("lessons.place", place)}</p>
    <h2 tabindex="-1">${local(lesson.title)}</h2>
    <div class="progress" aria-hidden="true">
      ${lesson.steps.map((_, i) => html`<i key=${i} class=${cx(i <= step && "done")}></i>`)}</div>
    <div aria-live="polite">${prose(now.text)}</div>
    ${now.question && html`<${Question} key=${lesson.id + step} question=${now.question}
      seed=${lab.ui.lesson.seed} choice=${choice} tried=${lab.ui.lesson.tried ?? []} choose=${(i) => answer(lab, lesson, i)} />`}
    ${now.task && html`<${Task} key=${lesson.id + step} lab=${lab} lesson=${lesson} task=${now.task} />`}
    <div role="status">
      ${!open && ended(lab, lesson) && !lab.frame.lesson.error && now.after && prose(now.after)}</div>
    <${Progress} lab=${lab} lesson=${lesson} />
    <${Again} lab=${lab} lesson=${lesson} />
    <${Steps} lab=${lab} lesson=${lesson} open=${open} />
    <${Links} lab=${lab} links=${lesson.links ?? []} />
    ${step > 0 && html`<button type="button" class="btn quiet"
      onClick=${() => leave(lab)}>${t("lessons.all")}</button>`}
  </article>`;
}

/** Progress reports that the program plays the step, or why it could not. */
function Progress({ lab, lesson }) {
  const state = lab.frame?.lesson;
  const { step, played, sentAt = 0 } = lab.ui.lesson;
  const lost = lab.source.live && lab.model.newest?.lesson?.id !== lesson.id && performance.now() - sentAt > ANSWER_MS;
  if (played === step && lost) {
    return html`<p class="dim" role="status">${t("lessons.elsewhere")}
      <button type="button" class="btn" onClick=${() => openAt(lab, lesson.id, step)}>${t("lessons.here")}</button></p>`;
  }
  if (state?.id !== lesson.id || state.step !== step) return null;
  if (state.error) return html`<${Failure} lab=${lab} lesson=${lesson} error=${state.error} />`;
  if (!["preparing", "running"].includes(state.state)) return null; // at its end, or the reader's turn
  return html`<p class="dim running">
    <span class="spin" aria-hidden="true"></span> ${t("lessons." + state.state)}</p>`;
}

/** Failure offers to begin a step again that the program could not play. The details are for its author. */
function Failure({ lab, lesson, error }) {
  if (lab.failure !== error) console.info("lesson", lesson.id, "step", lab.ui.lesson.step, error);
  lab.failure = error;
  return html`<p class="hot" role="alert">${t("lessons.failed")}</p>
    <p><button type="button" class="btn again" onClick=${() => again(lab, lesson)}>${t("lessons.again")}</button></p>`;
}

/** Steps has the buttons that lead to the step before, on after a stop, and after the end to the next step. */
function Steps({ lab, lesson, open }) {
  const { step } = lab.ui.lesson;
  const last = step === lesson.steps.length - 1;
  const next = lab.lessons[lab.lessons.indexOf(lesson) + 1];
  const onward = () => (last ? leave(lab) : goTo(lab, lesson, step + 1));
  return html`<div class="steps">
    <button type="button" class="btn"
      onClick=${() => (step === 0 ? leave(lab) : goTo(lab, lesson, step - 1))}>
      ← ${step === 0 ? t("lessons.all") : t("lessons.back")}</button>
    ${stopOf(lab) && !ended(lab, lesson)
      ? html`<button key="next" type="button" class="btn primary proceeds" onClick=${() => proceed(lab)}>
          ${t("stop.proceed")}</button>`
      : html`<button key="next" type="button" class="btn primary" disabled=${open} aria-disabled=${!ended(lab, lesson)}
          onClick=${() => ended(lab, lesson) && onward()}>
          ${last ? t("lessons.end") : t("lessons.next") + " →"}</button>`}
    ${last && next && ended(lab, lesson) && html`<${Onward} lab=${lab} next=${next} />`}
  </div>`;
}

/** Onward leads to the next lesson, which is a page of its own in the static edition. */
function Onward({ lab, next }) {
  const text = t("lessons.nextLesson", { title: local(next.title) }) + " →";
  if (lab.source.lesson) return html`<a class="btn quiet nextLesson" href="${next.id}.html">${text}</a>`;
  return html`<button type="button" class="btn quiet nextLesson" onClick=${() => begin(lab, next)}>${text}</button>`;
}

function Links({ lab, links }) {
  if (!links.length) return null;
  return html`<h3>${t("readOn")}</h3>
    <ul class="links">${links.map((link, i) => html`<li key=${i}>
      ${named("link", link.kind)}${" "}
      <${Path} lab=${lab} path=${translated(link.path)} text=${link.text ?? translated(link.path)} />
    </li>`)}</ul>`;
}

/** Task says what the reader has to do, why another way does not count, and how it can be done. */
function Task({ lab, lesson, task }) {
  const { step, hint } = lab.ui.lesson;
  const state = lab.frame?.lesson;
  const here = state?.id === lesson.id && state.step === step;
  const because = here && state.wrong > 0 && task.wrong?.[state.wrong - 1]?.because;
  const acts = yours(lab, lesson);
  const [turn, done] = lab.source.lesson ? ["taskThere", "taskShown"] // a page alone can only show it
    : ["task", "taskDone"];
  return html`<section class=${cx("task", acts && "yours")}>
    <p role="status"><b>${t("lessons." + (ended(lab, lesson) ? done : turn))}</b>${" "}
      <${Prose} text=${task.ask} follow=${lab.ui.follow} /></p>
    ${because && html`<p class="hot" role="alert"><${Prose} text=${because} /></p>`}
    ${acts && hint && html`<p><${Prose} text=${task.hint} /></p>`}
    ${acts && html`<p>
      ${!hint && task.hint && html`<button type="button" class="btn quiet"
        onClick=${() => lab.set({ lesson: { ...lab.ui.lesson, hint: true } })}>${t("lessons.hint")}</button>`}
      <button type="button" class="btn quiet" onClick=${() => solve(lab, lesson)}>
        ${t("lessons.solve")}</button></p>`}
  </section>`;
}

/**
 * Question asks before the answer is shown. choice is the index of the right option, or the right
 * card if the question asks where; SHOWN if the answer was shown without it, or null while the
 * question is open. tried are the wrong choices, the newest last: the reader may try all others.
 */
function Question({ question, seed, choice, tried, choose }) {
  const open = choice == null;
  const wrong = tried.at(-1);
  const why = question.where ? (question.why?.[wrong] ?? t("lessons.notHere")) : question.options[wrong]?.why;
  return html`<fieldset class="question">
    <legend><${Prose} text=${question.ask} /></legend>
    ${question.where
      ? html`<p>${open ? t("lessons.where") : html`${choice === question.where ? "✓" : "→"}${" "}
          <b>${t(`piece.${question.where}.name`)}</b>`}</p>`
      : shuffled(question.options, seed).map(({ option, i }) => html`
          <${Option} key=${i} option=${option} wrong=${tried.includes(i)} open=${open} choose=${() => choose(i)} />`)}
    <p role="status">${open ? wrong != null && html`✕ <${Prose} text=${why} />` : html`<${Prose} text=${question.answer} />`}</p>
    ${open && html`<button type="button" class="btn quiet" onClick=${() => choose(SHOWN)}>
      ${t("lessons.show")}</button>`}
  </fieldset>`;
}

/** Option stays enabled while the question is open, so that the focus is not lost. */
function Option({ option, wrong, open, choose }) {
  const right = !open && option.right;
  return html`<button type="button" disabled=${!open} aria-pressed=${Boolean(wrong || right)}
    class=${cx("option", right && "right", wrong && "wrong")} onClick=${choose}>
    <span aria-hidden="true">${right ? "✓" : wrong ? "✕" : "○"}</span>
    <span><${Prose} text=${option.text} /></span></button>`;
}

/** shuffled returns the options in an order that the seed decides, each with its index. */
function shuffled(options, seed = 0) {
  const place = (i) => (Math.sin((seed + 1) * 1000 + i * 77) * 10_000) % 1;
  return options.map((option, i) => ({ option, i })).sort((a, b) => place(a.i) - place(b.i));
}
return { Lessons, openAt, openFirst, alone, turn, leave, predicting, pointed };
})();

modules["card.js"] = (() => {
// SPDX-License-Identifier: Apache-2.0

/** The frame of a card, and the rows that several cards share. */
const { html, cx } = modules["html.js"];
const { ActionBar } = modules["actions.js"];
const { number } = modules["key.js"];
const { pointed, predicting } = modules["lessons.js"];
const { t } = modules["text.js"];

/**
 * Card is one piece of the pipeline. Its heading opens the piece's panel; it is lit while the last
 * frame had a change in it, and marked while a lesson or a change of the code points to it.
 */
function Card({ lab, piece, title, summary, bad, children }) {
  const question = predicting(lab);
  const wrong = question?.tried.includes(piece);
  const shown = pointed(lab).includes(piece) || lab.frame?.code?.watch?.includes(piece);
  return html`<section id=${"card-" + piece} data-piece=${piece} aria-labelledby=${"title-" + piece}
    class=${cx("card", "card-" + piece, lab.lit.has(piece) && "lit", shown && "pointed", bad && "bad")}>
    <header>
      <h2 id=${"title-" + piece}>
        <button type="button" class="title" title=${t("open", { piece: title })}
          aria-expanded=${lab.ui.tab === "piece" && lab.ui.piece === piece}
          onClick=${() => lab.set({ tab: "piece", piece })}>${title}</button>
      </h2>
      <small>${summary}</small>
    </header>
    ${question && html`<button type="button" class=${cx("pick", wrong && "wrong")} aria-pressed=${Boolean(wrong)}
      onClick=${() => question.choose(piece)}>
      <span>${wrong ? "✕ " : ""}${t("lessons.pick", { piece: title })}</span></button>`}
    <div class="body">${children}</div>
    <${ActionBar} lab=${lab} piece=${piece} />
  </section>`;
}

/** More says how many rows of a list are not shown. */
function More({ shown, total }) {
  if (!(total > shown)) return null;
  return html`<li class="dim more">${t("more", { n: number(total - shown) })}</li>`;
}

/** Empty is what a card shows instead of an empty list. */
const Empty = ({ children }) => html`<p class="dim empty">${children}</p>`;
return { Card, More, Empty };
})();

modules["cards-work.js"] = (() => {
// SPDX-License-Identifier: Apache-2.0

/** The cards from the local copy to the work: handlers, workqueue, workers, election. */
const { html, cx } = modules["html.js"];
const { Card, Empty, More } = modules["card.js"];
const { Chip, Chips, colourOf, duration, number, shortName } = modules["key.js"];
const { named, t } = modules["text.js"];

/** LOG_CELLS is how many changes of the change log are drawn. */
const LOG_CELLS = 16;
const LETTER = { OnAdd: "+", OnUpdate: "~", OnDelete: "−" };

/** HandlersCard shows the end of the change log, with each handler's cursor below it. */
function HandlersCard({ lab }) {
  const handlers = lab.frame.handlers ?? [];
  const log = (lab.frame.log?.items ?? []).slice(-LOG_CELLS);
  const blank = Math.max(0, LOG_CELLS - log.length);
  const { follow } = lab.ui;
  return html`<${Card} lab=${lab} piece="handlers" title=${t("piece.handlers.name")}
    summary=${t("handlers.count", { n: handlers.length })}
    bad=${handlers.some((handler) => handler.delayMs > 0)}>
    <div class="changelog" aria-label=${t("handlers.log")} role="list">
      ${Array.from({ length: blank }, (_, i) => html`
        <span key=${"blank" + i} class="cell blank" role="presentation"></span>`)}
      ${log.map(({ what, key = "", rv = "" }, i) => html`
        <span key=${i} role="listitem" data-key=${key} title=${`${what} ${key} @${rv}`}
          class=${cx("cell", colourOf(key), follow && follow !== key && "off")}>
          ${LETTER[what] ?? "·"}</span>`)}
    </div>
    <ul class="cursors" tabindex="0">
      ${handlers.map((handler) => html`<${Cursor} key=${handler.name} lab=${lab} handler=${handler} />`)}
    </ul>
    <p class="note">${t("handlers.note")}</p>
  <//>`;
}

/** Cursor marks how far a handler has read: the cells to its right are its backlog. */
function Cursor({ lab, handler }) {
  const pending = handler.pending ?? 0;
  const place = Math.max(0, LOG_CELLS - pending);
  const left = (place / LOG_CELLS) * 100 + "%";
  return html`<li class=${cx(pending > 0 && "behind", handler.delayMs > 0 && "slowed")}>
    <span class="rail"><span class="backlog" style=${{ left, right: "0" }}></span>
      <span class="caret" style=${{ left }} aria-hidden="true"></span></span>
    <span class="name">${handler.name}</span>
    <span class="state">
      ${pending ? t("handlers.pending", { n: number(pending) }) : t("handlers.current")}
      ${pending > 0 && handler.oldestMs > 0 && html` ·${" "}
        <span title=${t("handlers.oldestHelp")}>${duration(handler.oldestMs)}</span>`}
      ${handler.delayMs > 0 && html` · ${t("handlers.slow", { delay: duration(handler.delayMs) })}`}
      ${handler.panics > 0 && html` ·${" "}
        <b class="hot">${t("handlers.panics", { n: number(handler.panics) })}</b>`}</span>
  </li>`;
}

/** WorkqueueCard shows the sets of the workqueue, and the heap of delayed keys. */
function WorkqueueCard({ lab }) {
  const q = lab.frame.workqueue ?? {};
  const processing = new Set(q.processing ?? []);
  const again = (q.dirty ?? []).filter((key) => processing.has(key));
  const follow = lab.ui.follow;
  const undone = lab.frame.code?.undone?.includes(again[0]);
  const column = (name, keys, total, fair) => html`<div class=${"set set-" + name}>
    <h3>${t(`workqueue.${name}`)} <small>${number(total ?? keys?.length)}</small></h3>
    ${fair && html`<${Groups} q=${q} />`}
    <${Chips} keys=${keys} total=${total} follow=${follow} priorities=${fair && q.priorities} />
  </div>`;
  return html`<${Card} lab=${lab} piece="workqueue" title=${t("piece.workqueue.name")}
    summary=${t("workqueue.limited", { n: number(q.limited) })}>
    <div class="sets">
      ${column("queue", q.queue, q.queued, true)}
      ${column("dirty", q.dirty, Math.max(q.dirty?.length ?? 0, (q.queued ?? 0) + again.length))}
      ${column("processing", q.processing)}
      <div class="set set-delayed">
        <h3>${t("workqueue.delayed")} <small>${number(q.delayedTotal)}</small></h3>
        <${Limiter} lab=${lab} q=${q} />
        <${Bucket} bucket=${q.bucket} />
        <${Delayed} lab=${lab} items=${q.delayed ?? []} total=${q.delayedTotal} />
        <${DeadLetters} lab=${lab} />
      </div>
    </div>
    <p class="note">${q.shutDown ? html`<${ShutDown} shutDown=${q.shutDown} />` : again.length
      ? html`<${Chip} id=${again[0]} follow=${follow} /> ${t(undone ? "workqueue.undone" : "workqueue.again")}`
      : t(lab.frame.settings?.fair ? "workqueue.fair" : "workqueue.note")}</p>
  <//>`;
}

/** Groups lists the groups of a fair queue, with their queued keys and those that workers have. */
function Groups({ q: { groups, groupsTotal } }) {
  if (!groups?.length) return null;
  return html`<ul class="groups" title=${t("workqueue.groupsHelp")}>
    ${groups.map(({ name, queued, working }) => html`<li key=${name}>
      <span>${name}</span> ${number(queued)}${working > 0 && html`<small> +${number(working)}</small>`}</li>`)}
    <${More} shown=${groups.length} total=${groupsTotal} />
  </ul>`;
}

/** ShutDown says how the queue was shut down, and what has come of it. */
function ShutDown({ shutDown: { drain, ended, refused } }) {
  return html`<b class="hot">${t(drain ? "workqueue.drain" : "workqueue.shutDown")}</b>
    ${drain && " " + t(ended ? "workqueue.drained" : "workqueue.draining")}
    ${refused > 0 && " " + t("workqueue.refused", { n: number(refused) })}`;
}

const LIMITERS = ["MaxOf", "Exponential", "FastSlow", "Bucket"];

/** Limiter offers the limiters, and shows the count of the followed key, or of the newest one. */
function Limiter({ lab, q }) {
  const choose = (event) => lab.send({ do: "limiter", name: event.target.value });
  const counts = q.requeues ?? [];
  const count = counts.find((c) => c.key === lab.ui.follow) ?? counts[0];
  return html`<p class="limiter">${lab.source.live && lab.model.hello?.writable && q.limiter
      ? html`<select onChange=${choose} value=${q.limiter} aria-label=${t("workqueue.limiter")}
          title=${t("workqueue.limiterHelp." + q.limiter)}>
          ${LIMITERS.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}</select>`
      : q.limiter && html`<b>${q.limiter}</b>`}
    ${count && html`<span class="requeues" title=${t("workqueue.requeuesHelp", { next: duration(count.nextMs) })}>
      NumRequeues(${shortName(count.key)}) = <b>${number(count.n)}</b></span>`}</p>`;
}

/** Bucket draws the token bucket, and how many keys wait for a token. */
function Bucket({ bucket }) {
  if (!bucket?.burst) return null;
  const { tokens, burst, perSecond } = bucket;
  const full = Math.max(0, tokens / burst);
  return html`<p class="bucket" title=${t("workqueue.bucketHelp", { rate: perSecond })}>
    <svg viewBox="0 0 20 20" aria-hidden="true"><path class="water"
        d=${`M${4 - 1.5 * full} ${18 - 14 * full}H${16 + 1.5 * full}L16 18H4Z`} />
      <path d="M2 3L4 18H16L18 3" /></svg>
    ${tokens < 0 ? t("workqueue.bucketEmpty", { n: number(-tokens) })
      : t("workqueue.bucket", { tokens: number(tokens), burst: number(burst) })}</p>`;
}

/** Delayed lists the heap in the order of the due times; a bar shrinks until a key is due. */
function Delayed({ lab, items, total }) {
  if (!items.length) return html`<span class="none">–</span>`;
  return html`<ol class="rows heap">
    ${items.map((item, i) => {
      const left = Math.max(0, item.dueMs - lab.age);
      const whole = Math.max(item.failures > 0 ? (item.nextMs ?? 0) / 2 : item.dueMs, left, 1);
      return html`<li key=${item.key}>
        <${Chip} id=${item.key} follow=${lab.ui.follow} first=${i === 0} />
        <span class="rv">${duration(left)}</span>
        <span class="due"><i style=${{ width: Math.min(100, (left / whole) * 100) + "%" }}></i></span>
        ${item.failures > 0 && html`<span class="dim" title=${t("workqueue.failuresHelp")}>
          ${t("workqueue.failures", { n: item.failures, next: duration(item.nextMs) })}</span>`}
        ${item.stale && html`<span class="dim" title=${t("workqueue.staleHelp")}>
          ${t("workqueue.stale", { rv: item.stale })}</span>`}
      </li>`;
    })}
    <${More} shown=${items.length} total=${total} />
  </ol>`;
}

/** DeadLetters lists the newest keys that the controller has given up. */
function DeadLetters({ lab }) {
  const { deadLetters, deadLettersTotal } = lab.frame.workers ?? {};
  if (!deadLetters?.length) return null;
  const shown = deadLetters.slice(0, 5);
  return html`<div class="dead">
    <h3>${t("workers.dead")} <small>${number(deadLettersTotal)}</small></h3>
    <ul class="rows">${shown.map((letter, i) => html`<li key=${letter.key}>
      <${Chip} id=${letter.key} follow=${lab.ui.follow} first=${i === 0} />
      <span class="dim" title=${letter.error}>
        ${t("workers.attempts", { n: letter.attempts })} · ${letter.reason}</span></li>`)}
      <${More} shown=${shown.length} total=${deadLettersTotal} />
    </ul></div>`;
}

/** WorkersCard shows each worker with its key. */
function WorkersCard({ lab }) {
  const workers = lab.frame.workers ?? {};
  const running = workers.running ?? [];
  const idle = Math.max(0, (workers.count ?? 0) - running.length - (workers.ended ?? 0));
  const outcomes = Object.entries(workers.outcomes ?? {})
    .map(([name, n]) => `${named("outcome", name)} ${number(n)}`);
  const standby = lab.frame.election?.on && !lab.frame.election.leftMs;
  return html`<${Card} lab=${lab} piece="workers" title=${t("piece.workers.name")}
    summary=${outcomes.join(" · ") || number(workers.count)}
    bad=${Boolean(workers.fault && workers.fault !== "none")}>
    <ul class="rows">
      ${running.map((worker, i) => html`<li key=${worker.key}>
        <span class="spin" aria-hidden="true"></span>
        <${Chip} id=${worker.key} follow=${lab.ui.follow} first=${i === 0} />
        <span class="rv">${duration(worker.ms + lab.age)}</span></li>`)}
      ${workers.ended > 0 && html`<li key="ended" class="dim">
        ${t("workers.ended", { n: workers.ended })}</li>`}
      ${idle > 0 && html`<li key="idle" class="dim"><span class="spin idle" aria-hidden="true"></span>
        ${t(standby ? "workers.standby" : "workers.idle", { n: idle })}</li>`}
    </ul>
  <//>`;
}

/** ago writes a time in tenths of a second, which change slowly enough to be read. */
const ago = (ms) => (Math.max(0, ms) / 1000).toFixed(1) + " s";

/** fenced describes what the receiver of the leaders' writes has done. */
const fenced = ({ refused, token }) =>
  refused ? t("election.refused", { n: number(refused) }) : t("election.stored", { token });

/** stateOf is what a candidate does; a recording may be older than the field. */
const stateOf = (e, name) => e.states?.[name] ?? (name === e.leader ? "leads" : "waits");

/** aboutCandidate says what a candidate does, and the time that it goes by. */
function aboutCandidate(e, name) {
  const state = stateOf(e, name);
  const ahead = state === "leads" && e.renewedMs < -1000;
  return [
    t("election." + state), e.pausedNames?.includes(name) && t("election.paused"),
    e.cutNames?.includes(name) && t("election.cut"),
    state === "leads" && e.leftMs > 0 && !ahead && t("election.renewed", { ago: ago(e.renewedMs) }),
    ahead && t("election.ahead", { by: duration(-e.renewedMs) }),
    e.observed?.[name] > 0 && t("election.observed", { ago: ago(e.observed[name]) }),
  ].filter(Boolean).join(" · ");
}

/** LeaseWrites shows the newest write of the lease, with those that named the same version. */
function LeaseWrites({ e: { writes = [] } }) {
  if (!writes.length) return null;
  const [{ rv, holder }] = writes;
  const same = writes.filter((write) => write.rv === rv).reverse();
  return html`<li class="writes" title=${t("election.writesHelp", { rv: rv || "–" })}>
    PUT rv ${rv || "–"}: ${same.map(({ by, code }, i) => html`${i > 0 && ", "}${by} →${" "}
      <b class=${code === 409 && "hot"}>${code}</b>`)}${!holder && ', holder ""'}</li>`;
}

/** ElectionCard shows the candidates, the lease and the fencing token. */
function ElectionCard({ lab }) {
  const e = lab.frame.election ?? {};
  if (!e.on) {
    return html`<${Card} lab=${lab} piece="election" title=${t("piece.election.name")}
      summary=${t("election.off")}>
      <${Empty}>${t("election.offNote")}<//><//>`;
  }
  const left = Math.max(0, (e.leftMs ?? 0) - lab.age);
  const whole = Math.max(e.durationMs ?? 15_000, left);
  return html`<${Card} lab=${lab} piece="election" title=${t("piece.election.name")}
    summary=${html`${t("election.token")} <b>${e.leftMs ? e.token : "–"}</b>`} bad=${!e.leftMs || e.paused}>
    <div class="lease"><i style=${{ width: (left / whole) * 100 + "%" }}></i>
      ${e.deadlineMs > 0 && html`<em title=${t("election.deadlineHelp")}
        style=${{ left: (1 - e.deadlineMs / whole) * 100 + "%" }}></em>`}
      <span>${e.leftMs > 0 && t("election.left", { left: duration(left) })}</span></div>
    <ul class="rows candidates" tabindex="0">
      ${(e.candidates ?? []).map((name) => html`<li key=${name} class=${cx(stateOf(e, name) !== "leads" && "dim")}>
        <span aria-hidden="true">${stateOf(e, name) === "leads" ? "●" : "○"}</span> ${shortName(name)}
        <span class="dim">${aboutCandidate(e, name)}</span></li>`)}
      ${!e.leftMs && html`<li key="note" class="note hot">${t("election.nobody")}
        ${e.openMs > 0 && " " + t("election.opens", { wait: duration(Math.max(0, e.openMs - lab.age)) })}</li>`}
      <${LeaseWrites} e=${e} />
      ${e.fence?.writes > 0 && html`<li key="fence" class="fence">${fenced(e.fence)}</li>`}
    </ul>
  <//>`;
}
return { HandlersCard, WorkqueueCard, WorkersCard, ElectionCard };
})();

modules["cards-copy.js"] = (() => {
// SPDX-License-Identifier: Apache-2.0

/** The cards from the wire to the local copy: server, reflector, delta queue, store. */
const { html, cx } = modules["html.js"];
const { Card, Empty, More } = modules["card.js"];
const { Chip, Chips, duration, number } = modules["key.js"];
const { local, named, t } = modules["text.js"];

const SIGN = { ADDED: "+", MODIFIED: "~", DELETED: "−" };

/**
 * held is the version up to which a frame's copy has the changes of a key. Each namespace of an
 * informer of namespaces has its own; of another namespace, the copy has nothing.
 */
function held({ reflector, store }, key, others) {
  if (!reflector?.namespaces) return Number(store?.rv) || 0;
  const found = reflector.namespaces.find(({ name }) => key.startsWith(name + "/"));
  return found && !found.leftOut ? Number(found.rv) || 0 : others;
}

/** ServerCard shows the server's log, and where in it the reflector is. */
function ServerCard({ lab }) {
  const server = lab.frame.server ?? {};
  const { kind, namespaces, rv } = lab.frame.reflector ?? {};
  const read = Number(rv) || 0;
  const unread = (entry) =>
    Number(entry.rv) > (namespaces ? held(lab.frame, entry.key ?? "", 0) : read);
  const log = [...(server.log ?? [])].reverse();
  const summary = server.up === false ? t("server.down") : html`rv <b>${server.rv}</b>`;
  const cursor = namespaces ? -1 : log.findIndex((entry) => !unread(entry));
  const compacted = Number(server.compacted) || 0;
  const gone = kind && kind.phase !== "serving"; // and its log with it
  return html`<${Card} lab=${lab} piece="server" title=${t("piece.server.name")} summary=${summary}
    bad=${server.up === false}>
    <ol class="rows log" reversed>
      ${log.map((entry, i) => html`
        <li key=${entry.rv} class=${cx(unread(entry) && "unread", i === cursor && "cursor")}>
          <span class="rv">${entry.rv}</span>
          <span class=${"sign " + entry.type} title=${entry.type}>
            <i aria-hidden="true">${SIGN[entry.type] ?? "·"}</i><span class="word">${entry.type}</span></span>
          ${entry.key && html`<${Chip} id=${entry.key} follow=${lab.ui.follow} first=${i === 0} />`}
        </li>`)}
    </ol>
    ${!log.length && html`<${Empty}>${t("server.empty")}<//>`}
    <p class="note">${t("server.count", { n: number(server.objects) })}${" "}
      ${server.fault ? html`<b class="hot">${named("fault", server.fault)}</b> ` : ""}
      ${compacted > 0 && t("server.compacted", { rv: server.compacted }) + " "}
      ${(read > 0 || namespaces) && !gone && notRead(server, read, compacted, log.filter(unread).length)}
    </p>
  <//>`;
}

/** notRead says what is between the reflector's version and the server's, as far as the log shows it. */
function notRead({ rv }, read, compacted, n) {
  if (n > 0) return t("server.unread", { n: number(n) });
  const others = read > 0 && Number(rv) > read && compacted <= read;
  return t(others ? "server.others" : "server.note", { read });
}

/** The state machine as it is drawn: the place of each phase, and the edges between them. */
const PHASES = {
  starting: [42, 14], "backing off": [156, 14],
  listing: [42, 57], streaming: [156, 57],
  opening: [42, 100], watching: [156, 100],
};
const EDGES = [
  ["starting", "listing", "M42 26V43"], ["starting", "streaming", "M78 22L122 44"],
  ["listing", "opening", "M42 69V86"], ["streaming", "watching", "M156 69V86"],
  ["streaming", "listing", "M118 57H83"],
  ["opening", "watching", "M80 96H115"], ["watching", "opening", "M118 104H83"],
  ["backing off", "starting", "M118 14H83"],
  ["watching", "backing off", "M193 94Q206 57 194 22"],
];

/** withoutRequest is the error of a request, without the address that was requested. */
const withoutRequest = (error) => error.replace(/^\w+ "[^"]*": /, "");

/** ReflectorCard shows the state machine, with the phase and the reason of the last transition. */
function ReflectorCard({ lab }) {
  const r = lab.frame.reflector ?? {};
  const phase = r.phase ?? "idle";
  const since = r.since ? lab.now - Date.parse(r.since) : null;
  return html`<${Card} lab=${lab} piece="reflector" title=${t("piece.reflector.name")}
    summary=${!r.namespaces && html`rv <b>${r.rv || "–"}</b>`} bad=${phase === "backing off"}>
    ${r.namespaces && html`<${Namespaces} all=${r.namespaces} />`}
    ${!r.namespaces && html`<svg class="machine" viewBox="0 0 206 114" role="img"
      aria-label=${t("reflector.picture", { phase: named("phase", phase) })}>
      <defs><marker id="tip" viewBox="0 0 6 6" refX="5" refY="3" markerWidth="6" markerHeight="6"
        orient="auto"><path d="M0 0L6 3L0 6Z" /></marker></defs>
      ${EDGES.map(([from, to, d]) => html`<path key=${from + to} d=${d} marker-end="url(#tip)"
        class=${cx("edge", r.from === from && phase === to && "now")} />`)}
      ${Object.entries(PHASES).map(([name, [x, y]]) => html`
        <g key=${name} class=${cx("phase", name === phase && "now", name === "backing off" && "wait")}>
          <rect x=${x - 37} y=${y - 11} width="74" height="22" rx="11" />
          <text x=${x} y=${y + 4}>${named("phase", name)}</text>
        </g>`)}
    </svg>`}
    ${!r.namespaces && html`<p class="note"><b>${named("phase", phase)}</b>${since != null && ` ${duration(since)}`}
      ${r.from && html` · ${t("reflector.from", { from: named("phase", r.from) })}`}
      ${r.reason && r.reason !== r.error &&
        t("reflector.because", { reason: named("reason", local(r.reason)) })}</p>`}
    ${r.kind && html`<p class="note" title=${r.kind.reason}>${r.kind.resource}:${" "}
      <b>${named("kindPhase", r.kind.phase)}</b></p>`}
    ${r.backoffMs > 0 && html`<p class="note">${t("reflector.backoff", { wait: duration(r.backoffMs) })}
      ${r.failures > 0 && html` · ${t("reflector.failures", { n: r.failures })}`}</p>`}
    ${r.error && html`<p class="note hot" tabindex="0">${withoutRequest(r.error)}</p>`}
  <//>`;
}

/** Namespaces lists the reflectors of an informer of namespaces, each with its phase and version. */
function Namespaces({ all }) {
  return html`<p class="note">${t("reflector.each")}</p>
    <ul class="rows namespaces">${all.map(({ name, phase, rv, leftOut, error }) => html`<li key=${name}>
      <b>${name}</b> <span class="dim">${named("phase", phase)}${rv && ` @${rv}`}</span>
      ${(leftOut || error) && html`<span class="hot" title=${error}>
        ${leftOut ? t("reflector.leftOut") : withoutRequest(error)}</span>`}</li>`)}
      ${!all.length && html`<li class="dim">–</li>`}</ul>`;
}

/** QueueCard shows the delta queue: keys with their deltas, or single deltas in order. */
function QueueCard({ lab }) {
  const queue = lab.frame.queue ?? {};
  const items = queue.items ?? [];
  const real = queue.kind === "RealFIFO";
  const hidden = queue.kind === "Parts";
  return html`<${Card} lab=${lab} piece="queue" title=${queue.kind ?? "DeltaFIFO"}
    summary=${hidden ? "" : [!real && t("queue.keys", { n: number(queue.keys) }), t("queue.deltas", { n: number(queue.deltas) })]
      .filter(Boolean).join(" · ")} bad=${queue.hold}>
    <ol class="rows">
      ${items.map((item, i) => html`<li key=${real ? i : item.key}>
        ${item.key
          ? html`<${Chip} id=${item.key} follow=${lab.ui.follow} first=${i === 0} />`
          : html`<b>${t("queue.all")}</b>`}
        <span class="deltas">${(item.deltas ?? []).map((delta, j) => html`
          <${Delta} key=${j} delta=${delta} />`)}
        </span>
      </li>`)}
      <${More} shown=${items.length} total=${real ? queue.deltas : queue.keys} />
    </ol>
    ${!items.length && html`<${Empty}>${t(hidden ? "queue.hidden" : "queue.empty")}<//>`}
    ${!hidden && html`<p class="note">
      ${t(queue.hold ? "queue.hold" : real ? "queue.noteReal" : "queue.note")}</p>`}
  <//>`;
}

/** Delta is one change. A delete without a version is a tombstone. */
function Delta({ delta: { type, rv } }) {
  const lost = type === "Deleted" && !rv;
  return html`<span class=${cx("delta", type, lost && "ghost")} title=${lost ? t("queue.tombstone") : undefined}>
    ${type}<i>${rv ? "@" + rv : lost ? " ✝" : ""}</i></span>`;
}

/** LOG_ROWS is how many changes of the server's log a frame has at most. */
const LOG_ROWS = 50;

const INDEXES = ["namespace", "label:team", "owner"];

/** StoreCard shows the objects and one index, which the reader chooses. */
function StoreCard({ lab }) {
  const store = lab.frame.store ?? {};
  const items = store.items ?? [];
  // The server's version also counts writes to other resources, so the changes are counted.
  const log = lab.frame.server?.log ?? [];
  const behind = log.filter((entry) => Number(entry.rv) > held(lab.frame, entry.key ?? "", Infinity)).length;
  const newest = new Map(log.map((entry) => [entry.key, Number(entry.rv)]));
  const stale = (item) => newest.get(item.key) > Number(item.rv);
  return html`<${Card} lab=${lab} piece="store" title=${t("piece.store.name")}
    summary=${html`${t("objects", { n: number(store.objects) })}
      ${behind > 0 && html` · <span class="hot" title=${t("store.behindHelp")}>
        ${t("store.behind", { n: number(behind) + (behind >= LOG_ROWS ? "+" : "") })}</span>`}`}>
    <ul class="rows tiles">
      ${items.map((item, i) => html`<li key=${item.key} class=${cx(stale(item) && "stale")}
        title=${stale(item) ? t("store.stale") : undefined}>
        <${Chip} id=${item.key} follow=${lab.ui.follow} first=${i === 0} />
        <span class="rv">@${item.rv}</span>
      </li>`)}
      <${More} shown=${items.length} total=${store.objects} />
    </ul>
    ${!items.length && html`<${Empty}>${t("store.empty")}<//>`}
    <${Freshness} store=${store} now=${lab.now} />
    <${IndexRows} lab=${lab} index=${store.index} items=${items} />
  <//>`;
}

/** Freshness says how current the copy is: up to which version, and as of when. */
function Freshness({ store: { rv, asOf }, now }) {
  const upTo = rv ? html`rv <b>${rv}</b>` : t("store.noList");
  const when = asOf ? t("store.asOf", { ago: duration(now - Date.parse(asOf)) }) : rv && t("store.lost");
  return html`<p class=${cx("note", "fresh", rv && !asOf && "hot")} title=${t("store.freshHelp")}>
    ${upTo}${when && html` · ${when}`}</p>`;
}

/** INDEX_ROWS is how many values of an index are drawn. */
const INDEX_ROWS = 4;

/** firstKey returns a list with one key of a set: the followed key, if it is in the set. */
const firstKey = (keys = [], follow) => (keys.includes(follow) ? [follow] : keys.slice(0, 1));

/**
 * IndexRows shows an index as a map, and what its function returns for the followed object. The
 * namespace is a part of the key already.
 */
function IndexRows({ lab, index, items }) {
  const values = index?.values ?? [];
  const { follow } = lab.ui;
  const own = index?.name !== INDEXES[0] && items.find((item) => item.key === follow)?.values;
  const choose = (event) => lab.send({ do: "index", name: event.target.value });
  const names = INDEXES.includes(index?.name) || !index?.name ? INDEXES : [index.name, ...INDEXES];
  return html`<div class="index">
    <label>${t("store.index")} ${lab.source.live && lab.model.hello?.writable
      ? html`<select onChange=${choose} value=${index?.name}>
          ${names.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}</select>`
      : html`<b>${index?.name ?? "–"}</b>`}</label>
    ${own && html`<span class="indexed" title=${t("store.indexFuncHelp")}>
      IndexFunc → [${own.join(", ")}]</span>`}
    <dl>${values.slice(0, INDEX_ROWS).map((entry) => html`<div key=${entry.value}>
      <dt>${entry.value || "–"}</dt>
      <dd><${Chips} keys=${firstKey(entry.keys, follow)} total=${entry.n} short follow=${follow} /></dd>
    </div>`)}</dl>
    ${!values.length && html`<p class="dim">${t("store.noValues")}</p>`}
  </div>`;
}
return { ServerCard, ReflectorCard, QueueCard, StoreCard };
})();

modules["model.js"] = (() => {
// SPDX-License-Identifier: Apache-2.0

/**
 * The model: what the page knows about the program.
 *
 *   M1  newest is the newest frame. frame is what the page shows: see present.js
 *   M2  hops holds the newest hops that are shown, in ascending order of n, at most HOPS of them
 *   M3  samples holds at most one entry per SAMPLE_MS, of the last WINDOW_S seconds
 */
const HOPS = 2000;

/** CONTROLS are the fields of a frame that the controls need at once. */
const CONTROLS = ["mode", "delayMs", "settings"];
const SAMPLE_MS = 250;
const EXAMPLE_MS = 2000;
const EXAMPLES = 10;
const WINDOW_S = 60;

class Model {
  constructor() {
    this.hello = null;
    this.reset();
  }

  /** reset forgets all frames: a program has started, or a recording was moved. */
  reset() {
    this.newest = null;
    this.frame = null;
    this.lastHop = -1;
    this.hops = [];
    this.samples = [];
    this.samplesVersion = 0;
    this.leftOut = 0;
    this.example = null;
    this.clockSkew = 0;
  }

  /** greet starts a connection. Another start of the program has other numbers and other hops. */
  greet(hello) {
    if (!hello.started || hello.started !== this.hello?.started) this.reset();
    this.hello = hello;
  }

  /**
   * receive takes the next frame, and returns it without the hops that were received before. now is
   * the reader's clock in milliseconds.
   */
  receive(frame, now) {
    const hops = (frame.hops ?? []).filter((hop) => hop.n > this.lastHop);
    for (const hop of hops) hop.at = timeOf(hop.t);
    this.lastHop = hops.at(-1)?.n ?? this.lastHop;
    this.newest = { ...frame, hops };
    this.clockSkew = Date.parse(frame.t) - now;
    this.leftOut = Math.max(0, (frame.counters?.events ?? 0) - (frame.counters?.shown ?? 0));
    if (this.frame) this.show(frame, CONTROLS);
    this.sample(frame);
    return this.newest;
  }

  /** show makes fields of a frame visible. */
  show(frame, fields) {
    this.frame = { ...this.frame };
    for (const field of fields) this.frame[field] = frame[field];
    if (fields.includes("t")) this.frameAt = Date.parse(frame.t);
  }

  /** arrived makes hops visible. */
  arrived(hops) {
    this.hops = this.hops.concat(hops).sort((a, b) => a.n - b.n).slice(-HOPS);
  }

  /**
   * exampleJourney is the key and the journeys that are shown while no key is followed: a complete
   * journey, if possible. The key changes at most every EXAMPLE_MS, so that it can be read, and its
   * journey is kept even if its hops have left the ring.
   */
  exampleJourney(now) {
    if (!this.example || now - this.example.at >= EXAMPLE_MS) {
      const done = this.hops.filter((hop) => hop.what === "reconciled").slice(-EXAMPLES).reverse();
      const complete = done.find(({ key }) => journeysOf(this.hops, key).at(-1).hops[0].hop === "server");
      const key = (complete ?? done[0] ?? this.hops.findLast((hop) => hop.key))?.key;
      if (key && key !== this.example?.key) this.example = { key, at: now, journeys: [] };
    }
    if (!this.example) return { journeys: [] };
    const journeys = journeysOf(this.hops, this.example.key);
    if (journeys.at(-1)?.hops.length > 1) this.example.journeys = journeys;
    return this.example;
  }

  /** now is the program's clock, estimated from its last frame. */
  now(readerNow) {
    return readerNow + this.clockSkew;
  }

  sample(frame) {
    const at = Date.parse(frame.t) / 1000;
    const last = this.samples.at(-1);
    if (last && at - last.at < SAMPLE_MS / 1000) return;
    this.samples.push({ at, ...frame.plot });
    while (this.samples[0].at < at - WINDOW_S) this.samples.shift();
    this.samplesVersion++;
  }

  /** series returns columns of the samples as uPlot wants them: times first. */
  series(...columns) {
    const data = [this.samples.map((s) => s.at)];
    for (const column of columns) data.push(this.samples.map((s) => column(s) ?? null));
    return data;
  }
}

/** timeOf reads an RFC 3339 time in milliseconds, with the fractions that Date.parse drops. */
function timeOf(text) {
  const fraction = /\.(\d+)/.exec(text)?.[1] ?? "";
  return Date.parse(text) + Number("0." + fraction.slice(3).padEnd(1, "0"));
}

/** CHANGES are the watch events that begin a journey. */
const CHANGES = new Set(["ADDED", "MODIFIED", "DELETED"]);

/**
 * journeysOf splits the hops of a key into journeys, oldest first. A journey begins with a watch
 * event, or with a second Pop, because a relist or a resync has no event per key. A hop with a
 * resourceVersion joins the newest journey that has it, any other hop joins the newest. Two changes
 * that one reconcile handles are two journeys, and the later one ends there.
 */
function journeysOf(hops, key) {
  const journeys = [];
  for (const hop of hops) {
    if (hop.key !== key) continue;
    const same = hop.rv && journeys.findLast((journey) => journey.rv === hop.rv);
    const journey = same || journeys.at(-1);
    const begins = (hop.hop === "server" && CHANGES.has(hop.what)) || (hop.what === "Pop" && journey?.popped);
    if (!journey || begins) journeys.push({ rv: hop.rv, hops: [hop], popped: hop.what === "Pop" });
    else {
      journey.hops.push(hop);
      journey.popped ||= hop.what === "Pop";
    }
  }
  return journeys;
}

/** whatOf names what happened at a hop: a reconcile with an error has failed. */
const whatOf = ({ hop, what, error }) =>
  hop === "worker" && error && what === "reconciled" ? "failed" : what;

/** The hops that end the stay of a change in a lane. */
const LEAVES = { deltafifo: "Pop", workqueue: "Get", worker: "reconciled" };

/**
 * lanesOf arranges a journey as a swimlane: per hop the spans between arrival and departure, and
 * the moments of all its events, in milliseconds since the journey began.
 */
function lanesOf(journey, order) {
  const start = journey.hops[0].at;
  const end = journey.hops.at(-1).at;
  return order.map((name) => {
    const moments = journey.hops
      .filter((hop) => hop.hop === name)
      .map((hop) => ({ ...hop, ms: hop.at - start }));
    const spans = [];
    let entered = null;
    for (const moment of moments) {
      if (moment.what === LEAVES[name]) {
        if (entered != null) spans.push([entered, moment.ms]);
        entered = null;
      } else if (LEAVES[name] && moment.what !== "Done" && moment.what !== "Forget") {
        entered ??= moment.ms;
      }
    }
    if (entered != null) spans.push([entered, end - start]);
    return { name, moments, spans };
  });
}

/** STAYS are the hops in which a change spends its time: the events that begin and end each. */
const STAYS = [
  ["deltafifo", (hop) => hop.hop === "deltafifo" && hop.what !== "Pop", (hop) => hop.what === "Pop"],
  ["store", (hop) => hop.what === "Pop", (hop) => hop.hop === "store"],
  ["handler", (hop) => hop.hop === "store", (hop) => hop.hop === "handler"],
  ["workqueue", (hop) => hop.hop === "workqueue" && hop.what === "Add", (hop) => hop.what === "Get"],
  ["worker", (hop) => hop.what === "reconcile", (hop) => hop.what === "reconciled"],
];

/** staysOf returns how long a change stayed in each hop, in milliseconds; null if it has not left it. */
function staysOf({ hops }) {
  return STAYS.map(([name, begins, ends]) => {
    const from = hops.find(begins);
    const to = from && hops.find((hop) => hop.at >= from.at && ends(hop));
    return { name, ms: to ? to.at - from.at : null };
  });
}
return { WINDOW_S, Model, journeysOf, whatOf, lanesOf, staysOf };
})();

modules["caption.js"] = (() => {
// SPDX-License-Identifier: Apache-2.0

/** The caption: in slow motion, one line says what happened at the newest hop, and why. */
const { html } = modules["html.js"];
const { whatOf } = modules["model.js"];
const { Prose } = modules["prose.js"];
const { Stop, stopOf } = modules["stop.js"];
const { filled, named, t } = modules["text.js"];

/** READABLE_MS is the least time per hop in which a caption can be read. */
const READABLE_MS = 800;

/** SAME are hops that have the texts of another one. */
const SAME = {
  server: { POST: "PUT", PATCH: "PUT", DELETE: "PUT" }, deltafifo: { Update: "Add", Delete: "Add" },
};

/**
 * textOf returns the text for a hop: that of its fact, which earlier events have proved, or else the
 * one that is true of every such hop. A call with an error has a text of its own.
 */
function textOf({ hop, what, key, rv, error, fact, args }) {
  const texts = t("caption")[hop];
  const name = SAME[hop]?.[what] ?? what;
  const always = texts?.[name];
  const failed = error && (texts?.[`${name} failed`] ?? (always && t("captionFailed")));
  const text = texts?.[`${name} ${fact}`] ?? (error ? failed : always);
  return text && filled(text, { ...args, key: `[[${key}]]`, rv: rv || "–", error });
}

/** captionOf returns the newest of some hops that has a caption, or null. */
const captionOf = (hops, follow) =>
  hops.findLast((hop) => (!follow || hop.key === follow) && textOf(hop)) ?? null;

/** hasCaption reports whether the time is so slow that there is a caption. */
const hasCaption = ({ frame }) =>
  frame?.mode === "pause" || (frame?.mode === "slow" && frame.delayMs >= READABLE_MS);

function Caption({ lab }) {
  if (stopOf(lab)) return html`<${Stop} lab=${lab} />`;
  if (!hasCaption(lab)) return null;
  const hop = lab.caption;
  return html`<p class="caption" aria-live="polite">${hop
    ? html`<b>${named("hop", hop.hop)} ${whatOf(hop)}</b> <${Prose} text=${textOf(hop)} follow=${lab.ui.follow} />`
    : html`<span class="dim">${t("captionNone")}</span>`}</p>`;
}
return { textOf, captionOf, hasCaption, Caption };
})();

modules["dialogs.js"] = (() => {
// SPDX-License-Identifier: Apache-2.0

/** The dialogs: all keys with what they do, and the settings that rebuild the stack. */
const { html, Component, createRef } = modules["html.js"];
const { ACTIONS, keyName, offered, perform } = modules["actions.js"];
const { number } = modules["key.js"];
const { t, translated } = modules["text.js"];

function Dialogs({ lab }) {
  const name = lab.ui.dialog;
  const close = () => lab.set({ dialog: null });
  if (!CONTENTS[name]) return null;
  return html`<${Dialog} key=${name} title=${t(name + ".title")} close=${close}>
    <${CONTENTS[name]} lab=${lab} close=${close} /><//>`;
}

const CONTENTS = { help: Help, settings: Settings };

/** Dialog is a modal dialog of the browser: it traps the focus, and Escape closes it. */
class Dialog extends Component {
  element = createRef();

  componentDidMount() {
    this.element.current.showModal();
  }

  /**
   * A dialog that is closed returns the focus; one that is only removed does not. Its close event
   * arrives later, when another dialog may be open.
   */
  componentWillUnmount() {
    this.removed = true;
    this.element.current.close();
  }

  render({ title, close, children }) {
    const outside = (event) => event.target === this.element.current && close();
    return html`<dialog ref=${this.element} aria-labelledby="dialog-title"
      onClose=${() => this.removed || close()} onClick=${outside}>
      <header><h2 id="dialog-title">${title}</h2>
        <button type="button" class="btn icon" aria-label=${t("close")}
          onClick=${close}>×</button></header>
      <div class="content">${children}</div>
    </dialog>`;
  }
}

const GROUPS = [...new Set(ACTIONS.map(({ piece }) => piece))];

function Help({ lab, close }) {
  const run = (a) => {
    close();
    perform(lab, a);
  };
  return html`<p>${t("help.intro")}</p>
    <div class="keys">${GROUPS.map((group) => {
      const actions = ACTIONS.filter((a) => a.piece === group && offered(lab, a));
      return actions.length > 0 && html`<section key=${group}>
        <h3>${t(`piece.${group}.name`)}</h3>
        <dl>${actions.map((a) => html`<div key=${a.id}>
          <dt><kbd>${keyName(a.key)}</kbd></dt>
          <dd><button type="button" class="link" onClick=${() => run(a)}>
            ${t(`action.${a.id}.name`)}</button>
            <span class="dim">${t(`action.${a.id}.help`)}</span></dd></div>`)}</dl></section>`;
    })}</div>
    <p class="dim">${t("help.list")}</p>
    ${lab.files && html`<p><a href=${lab.files + translated("docs/README.md")}
      target="_blank" rel="noreferrer">${t("docs")}</a></p>`}`;
}

const RATES = [0, 1, 5, 20, 100, 1000];
const OBJECTS = [5, 20, 100, 1000, 10_000];

/**
 * Settings sends one command for the stack and one for the workload. Its fields begin with the
 * present settings, and the next frame does not change what the reader has typed.
 */
function Settings({ lab, close }) {
  const now = lab.frame?.settings ?? {};
  const random = ["on", "paused"].includes(now.faults);
  const submit = (event) => {
    event.preventDefault();
    const form = new FormData(event.target);
    const value = (name) => Number(form.get(name));
    lab.send({
      do: "settings", queue: form.get("queue"), watchList: form.get("list") === "watchList",
      fair: form.get("order") === "fair",
      workers: value("workers"), workMs: value("workMs"),
    });
    const faults = form.has("faults");
    if (value("rate") !== now.rate || value("objects") !== now.objects || faults !== random) {
      lab.send({ do: "workload", rate: value("rate"), objects: value("objects"), faults });
    }
    close();
  };
  const radio = (name, value, text, checked) => html`<label class="choice">
    <input type="radio" name=${name} value=${value} defaultChecked=${checked} /> ${text}</label>`;
  const select = (name, values, chosen) => html`<select name=${name} id=${"set-" + name}>
    ${(values.includes(chosen) || chosen == null ? values : [...values, chosen]).map((n) => html`
      <option key=${n} value=${String(n)} selected=${n === chosen}>${number(n)}</option>`)}</select>`;
  return html`<form class="settings" onSubmit=${submit}>
    <p class="dim">${t("settings.intro")}</p>
    <fieldset><legend>${t("settings.queue")}</legend>
      ${radio("queue", "deltafifo", "DeltaFIFO", now.queue !== "realfifo")}
      ${radio("queue", "realfifo", "RealFIFO", now.queue === "realfifo")}</fieldset>
    <fieldset><legend>${t("settings.list")}</legend>
      ${radio("list", "list", "LIST + WATCH", !now.watchList)}
      ${radio("list", "watchList", "WatchList", now.watchList)}</fieldset>
    <fieldset><legend>${t("piece.workqueue.name")}</legend>
      ${radio("order", "fifo", t("settings.fifo"), !now.fair)}
      ${radio("order", "fair", t("settings.fair"), now.fair)}</fieldset>
    <fieldset><legend>${t("piece.workers.name")}</legend>
      <label for="set-workers">${t("settings.workers")}</label>
      <input id="set-workers" name="workers" type="number" min="1" max="16" required
        defaultValue=${now.workers ?? 2} />
      <label for="set-workMs">${t("settings.workMs")}</label>
      <input id="set-workMs" name="workMs" type="number" min="0" max="60000" step="10" required
        defaultValue=${now.workMs ?? 100} /></fieldset>
    <fieldset><legend>${t("settings.workload")}</legend>
      <label for="set-rate">${t("settings.rate")}</label>
      ${select("rate", RATES, now.rate ?? 0)}
      <label for="set-objects">${t("settings.objects")}</label>
      ${select("objects", OBJECTS, now.objects ?? 20)}
      <label class="choice"><input type="checkbox" name="faults" defaultChecked=${random} />${" "}
        ${t("settings.faults")}</label></fieldset>
    <div class="steps"><button type="button" class="btn" onClick=${close}>${t("cancel")}</button>
      <button type="submit" class="btn primary">${t("apply")}</button></div>
  </form>`;
}
return { Dialogs };
})();

modules["source.js"] = (() => {
// SPDX-License-Identifier: Apache-2.0

/**
 * Sources of frames. The page does not know whether a program or a recording sends them: both
 * sources call on.hello, on.frame and on.connection, and have send.
 */

/** LiveSource follows a running program through an EventSource, which reconnects by itself. */
class LiveSource {
  constructor(on) {
    this.on = on;
    this.live = true;
    this.lessons = [];
  }

  start() {
    const stream = (this.stream = new EventSource("lab/events"));
    stream.addEventListener("open", () => this.on.connection("connected"));
    stream.addEventListener("error", () => {
      // A browser gives up for good after an answer that is not a stream, as that of a program
      // with another token. It may be one of something between; so start again then.
      const refused = stream.readyState === EventSource.CLOSED;
      this.on.connection(refused ? "refused" : "disconnected");
      if (refused) setTimeout(() => this.start(), 2000);
    });
    stream.addEventListener("hello", (event) => this.greet(JSON.parse(event.data)));
    stream.addEventListener("frame", (event) => this.on.frame(JSON.parse(event.data)));
  }

  stop() {
    this.stream.close();
  }

  async greet(hello) {
    this.token = hello.token;
    this.on.hello(hello);
    if (hello.lessons?.length || hello.lessons === true) {
      const answer = await fetch("lab/lessons");
      if (answer.ok) this.on.lessons((await answer.json()).lessons ?? []);
    }
  }

  /** find returns keys of the store that contain a text. */
  async find(text) {
    const answer = await fetch("lab/keys?" + new URLSearchParams({ contains: text }));
    return answer.ok ? (await answer.json()).keys : [];
  }

  /** send posts a command, after those before it, and returns the error's text, or "". */
  send(command) {
    this.sent = (this.sent ?? Promise.resolve()).then(() => this.post(command));
    return this.sent;
  }

  async post(command) {
    try {
      const answer = await fetch("lab/command", {
        method: "POST",
        headers: { "Content-Type": "application/json", "X-Lab-Token": this.token ?? "" },
        body: JSON.stringify(command),
        keepalive: true, // also when the page closes
      });
      if (answer.ok) return "";
      const body = await answer.json().catch(() => ({}));
      return body.error || `${answer.status} ${answer.statusText}`;
    } catch (error) {
      return String(error.message || error);
    }
  }
}

/** RecordedSource plays frames of a recording at the reader's pace. */
class RecordedSource {
  constructor(on, recording) {
    this.on = on;
    this.live = false;
    this.frames = recording.frames;
    this.hello = { ...recording.hello, writable: false };
    this.times = this.frames.map((frame) => Date.parse(frame.t));
    this.length = this.frames.length ? this.times.at(-1) - this.times[0] : 0;
    this.speed = 1;
    this.index = -1;
    this.at = 0;
  }

  start() {
    this.on.hello(this.hello);
    this.on.connection("recorded");
    this.play();
  }

  get playing() {
    return this.timer != null;
  }

  /** play continues from the present position, or from the start at the end. */
  play() {
    if (this.at >= this.length) this.seek(0);
    this.pause();
    let last = performance.now();
    this.timer = setInterval(() => {
      const now = performance.now();
      this.moveTo(this.at + (now - last) * this.speed);
      last = now;
      if (this.at >= this.length) this.pause();
    }, 100);
    this.on.moved();
  }

  pause() {
    clearInterval(this.timer);
    this.timer = null;
    this.on.moved();
  }

  /** step shows the next frame, or the one before. */
  step(by) {
    const index = Math.min(Math.max(this.index + by, 0), this.frames.length - 1);
    if (by < 0) return this.show(index);
    this.pause();
    this.moveTo(this.times[index] - this.times[0]);
  }

  /** show shows one frame. */
  show(index) {
    this.pause();
    this.seek(this.times[index] - this.times[0]);
  }

  /** seek moves to a time in milliseconds and rebuilds what the page shows from the frames before. */
  seek(at) {
    this.on.restart();
    const from = this.times.findIndex((time) => time - this.times[0] >= at - 60_000);
    this.index = Math.max(from, 0) - 1;
    this.moveTo(at, true);
  }

  moveTo(at, silent) {
    this.at = Math.min(Math.max(at, 0), this.length);
    const until = this.times[0] + this.at;
    while (this.index + 1 < this.frames.length && this.times[this.index + 1] <= until) {
      this.index++;
      this.on.frame(this.frames[this.index], { at: this.times[this.index], silent });
    }
    this.on.moved();
  }

  async send() {
    return "";
  }

  /** find looks among the objects of the present frame, of which a recording has at most 50. */
  async find(text) {
    const items = this.frames[this.index]?.store?.items ?? [];
    return items.map(({ key }) => key).filter((key) => key.includes(text)).slice(0, 20);
  }
}

/** sameStop reports whether two views of a lesson are of one stop. */
const sameStop = (a, b) => Boolean(a?.stop) && a.stop.n === b?.stop?.n && a.step === b.step && a.id === b.id;

/** KEPT_MS is how far a reader can look back in a live run. */
const KEPT_MS = 60_000;

/**
 * History keeps the last frames of a live run, of each stop of a lesson one. skew is the program's
 * clock minus the reader's.
 */
class History {
  constructor() {
    this.frames = [];
    this.skew = 0;
  }

  add(frame) {
    const last = this.frames.at(-1);
    if (sameStop(frame.lesson, last?.lesson)) {
      this.frames.pop();
      frame = { ...frame, hops: [...last.hops, ...frame.hops] };
    }
    this.frames.push(frame);
    this.skew = Date.parse(frame.t) - Date.now();
    const oldest = Date.parse(frame.t) - KEPT_MS;
    while (Date.parse(this.frames[0].t) < oldest) this.frames.shift();
  }

  /** source returns a source that is at the end of what is kept now. */
  source(on, hello) {
    const past = new RecordedSource(on, { hello, frames: this.frames.slice() });
    past.index = past.frames.length - 1;
    past.at = past.length;
    return past;
  }
}

/** embeddedRecording returns the recording that a page without a program carries, or null. */
async function embeddedRecording() {
  const packed = document.getElementById("recording")?.textContent;
  if (!packed) return null;
  const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(unpacked).json();
}

/** parseLine reads one line; the last one may be cut off if the program was killed. */
function parseLine(line) {
  try {
    return JSON.parse(line);
  } catch {
    return {};
  }
}

/** parseRecording reads JSON lines: one {"hello":…}, then one {"frame":…} per line. */
function parseRecording(text) {
  const recording = { hello: {}, frames: [] };
  for (const line of text.split("\n")) {
    if (!line.trim()) continue;
    const entry = parseLine(line);
    if (entry.hello) recording.hello = entry.hello;
    if (entry.frame) recording.frames.push(entry.frame);
  }
  return recording;
}
return { LiveSource, RecordedSource, History, embeddedRecording, parseRecording };
})();

modules["edition.js"] = (() => {
// SPDX-License-Identifier: Apache-2.0

/** The static edition of a lesson: a page with one lesson and the recorded frames of its steps. */
const { readAddress } = modules["address.js"];
const { RecordedSource } = modules["source.js"];

/** PACE_MS is the least time per hop at the usual speed: a caption can be read. */
const PACE_MS = 1000;

/** PAST_MS is the time before a step that is kept when the reader moves within the step. */
const PAST_MS = 60_000;

/** EditionSource plays the frames of a step when the page asks the program to play that step. */
class EditionSource extends RecordedSource {
  constructor(on, { hello, lesson, lessons, starts, frames }) {
    super({ ...on, frame: (frame, how) => on.frame(this.slowed(frame), how) }, { hello, frames: [] });
    this.lessons = lessons;
    this.lesson = lessons.find((l) => l.id === lesson);
    this.starts = starts;
    this.all = complete(frames);
  }

  /** start shows the pipeline before the first step, or before the one that the address names. */
  start() {
    this.on.hello(this.hello);
    this.on.connection("recorded");
    this.choose(0, this.starts[readAddress().step] ?? this.starts.at(-1));
    this.moveTo(this.length, true);
    this.on.lessons(this.lessons);
  }

  /** next is the lesson after this one, or undefined. */
  get next() {
    return this.lessons[this.lessons.indexOf(this.lesson) + 1];
  }

  /** slowed is a frame in the slow motion of the reader: the slower, the longer a change travels. */
  slowed(frame) {
    if (frame.mode !== "slow" || this.speed > 1) return frame;
    return { ...frame, delayMs: Math.max(frame.delayMs, PACE_MS) / this.speed };
  }

  async send(command) {
    if (command.do === "lesson" && command.id === this.lesson.id) this.perform(command.step);
    if (command.do === "solve") this.proceed();
    return "";
  }

  /**
   * perform plays a step until it halts: at its end, at a stop, or at the reader's task, which has a
   * recorded solution.
   */
  perform(step) {
    const [from, end] = [this.starts[step], this.starts[step + 1] ?? this.all.length];
    const state = (at) => (this.all[at]?.lesson?.step === step ? this.all[at].lesson : null);
    let yours = false;
    this.halts = [];
    for (let at = from; at < end; at++) {
      const waits = !yours && state(at)?.state === "yours";
      yours ||= waits;
      if (waits || (state(at)?.stop && state(at + 1)?.stop?.n !== state(at).stop.n)) this.halts.push(at + 1);
    }
    if (this.halts.at(-1) !== end) this.halts.push(end);
    this.performed = step;
    const follows = this.from + this.index + 1 === from;
    this.choose(from, this.halts.shift());
    if (!follows) this.seek(0);
    this.play();
  }

  /** proceed plays the step from its present halt to the next one. */
  proceed() {
    if (!this.halts?.length) return;
    const { at, index } = this;
    this.choose(this.from, this.halts.shift());
    Object.assign(this, { at, index });
    super.play();
  }

  /** play continues after a stop. */
  play() {
    const stopped = this.at >= this.length && this.frames.at(-1)?.lesson?.stop;
    if (stopped && this.halts?.length) this.proceed();
    else super.play();
  }

  /** choose makes the source play these frames. */
  choose(from, to) {
    this.from = from;
    this.frames = this.all.slice(from, to);
    this.times = this.frames.map((frame) => Date.parse(frame.t));
    this.length = this.times.at(-1) - this.times[0];
    this.index = -1;
    this.at = 0;
  }

  /** seek moves within the frames that were chosen. */
  seek(at) {
    this.on.restart();
    for (const frame of this.all.slice(0, this.from)) {
      const time = Date.parse(frame.t);
      if (time > this.times[0] - PAST_MS) this.on.frame(frame, { at: time, silent: true });
    }
    this.index = -1;
    this.moveTo(at, true);
  }

  /**
   * moveTo waits for what is on its way: a change travels longer on the page than it did in slow
   * motion. A reader in a hurry does not wait.
   */
  moveTo(at, silent) {
    const waits = this.speed <= 1 && this.frames[this.index]?.mode === "slow";
    if (waits && this.playing && !silent && this.on.busy()) return;
    super.moveTo(at, silent);
    // The step stays ended when the reader moves back: the answer stays on the page.
    const lesson = this.frames[this.index]?.lesson;
    const done = lesson?.state === "done" && lesson.step === this.performed;
    if (done) for (const frame of this.frames) frame.lesson = kept(frame.lesson, lesson);
  }
}

/** kept is the view of a step that has ended, with the stop of an earlier frame. */
const kept = (at, ended) => (at?.stop ? { ...ended, watch: at.watch, stop: at.stop } : ended);

/** complete returns complete frames. A recorded one has only the fields that have changed. */
function complete(frames) {
  let last = {};
  return frames.map((changed) => (last = { ...last, ...changed }));
}
return { EditionSource, complete };
})();

modules["rails.js"] = (() => {
// SPDX-License-Identifier: Apache-2.0

/** The ways between the cards, and the way that each hop takes. */

/** The rails: where they begin and end. */
const RAILS = {
  ask: ["reflector", "server"],
  wire: ["server", "reflector"],
  deltas: ["reflector", "queue"],
  pop: ["queue", "store"],
  notify: ["store", "handlers"],
  keys: ["handlers", "workqueue"],
  get: ["workqueue", "workers"],
  write: ["workers", "server"],
};

/** SERVER are the rails of the server's events. A LIST is a request and its answer. */
const SERVER = {
  LIST: ["ask", "wire"], WATCH: ["ask"],
  ADDED: ["wire"], MODIFIED: ["wire"], DELETED: ["wire"], BOOKMARK: ["wire"], ERROR: ["wire"],
  POST: ["write"], PUT: ["write"], PATCH: ["write"], DELETE: ["write"],
};

/** railsOf returns the rails that a hop takes, one after the other. Not every hop is a movement. */
function railsOf(hop) {
  switch (hop.hop) {
    case "server":
      return SERVER[hop.what] ?? [];
    case "deltafifo":
      return hop.what === "Pop" ? ["pop"] : ["deltas"];
    case "store":
      return ["notify"]; // into the log, where each handler finds it
    case "workqueue":
      return { Get: ["get"], Add: ["keys"] }[hop.what] ?? [];
  }
  return [];
}

/** cardOf returns the piece of a hop's card. */
function cardOf(hop) {
  const pieces = { deltafifo: "queue", handler: "handlers", worker: "workers" };
  return pieces[hop.hop] ?? hop.hop;
}
return { RAILS, railsOf, cardOf };
})();

modules["flow.js"] = (() => {
// SPDX-License-Identifier: Apache-2.0

/**
 * The flow between the cards, or between the pieces of the strip: rails that connect them, and tokens
 * that travel along the rails.
 *
 * The rails are an SVG; the tokens are elements above it, moved by the Web Animations API, so that
 * a frame of the animation runs no code of the page.
 *
 *	F1  at most MAX_TOKENS tokens exist; a hop beyond that is counted by its rail's crowd
 *	F2  a rail has at most one crowd at a time: a token with a number instead of a key
 */
const { cx } = modules["html.js"];
const { colourOf, shortName } = modules["key.js"];
const { RAILS, railsOf } = modules["rails.js"];
const { t } = modules["text.js"];

const MAX_TOKENS = 40;
const CROWD_MS = 520;
/** LABEL_PX is the distance of a label from a rail that goes up or down. */
const LABEL_PX = 56;
const SVG = "http://www.w3.org/2000/svg";

/** isOne reports whether a hop is one token: an object, a request, or a message of the watch. */
const isOne = (rail, hop) => hop.key || rail === "ask" || (rail === "wire" && hop.what !== "LIST");

/** messageOf is the text of a token without a key: WATCH @1722, 410 Gone. A held one has no error. */
function messageOf({ what, rv, error = "" }) {
  if (what === "ERROR") return error.includes("too old") || error.includes("Expired") ? "410 Gone" : "ERROR";
  return what === "WATCH" || what === "BOOKMARK" ? `${what} @${rv || "–"}` : what;
}

class Flow {
  /** container holds the pieces; overlay covers it and belongs to the Flow; layout is one of the below. */
  constructor(container, overlay, layout) {
    this.container = container;
    this.layout = layout;
    this.svg = document.createElementNS(SVG, "svg");
    this.svg.setAttribute("class", "rails");
    this.layer = document.createElement("div");
    this.layer.className = "tokens";
    overlay.append(this.svg, this.layer);
    this.paths = {};
    this.crowds = {};
    this.flying = 0;
    new ResizeObserver(() => this.measure()).observe(container);
    this.measure();
  }

  /** measure draws the rails anew: a card has moved, or the language has changed. */
  measure() {
    const origin = this.container.getBoundingClientRect();
    const boxes = {};
    for (const element of this.container.querySelectorAll("[data-piece]")) {
      const r = element.getBoundingClientRect();
      if (!r.width) continue; // it is not shown
      boxes[element.dataset.piece] = {
        left: r.left - origin.left, right: r.right - origin.left,
        top: r.top - origin.top, bottom: r.bottom - origin.top,
      };
    }
    this.svg.replaceChildren();
    for (const [name, [from, to]] of Object.entries(RAILS)) {
      const drawn = origin.width > 0 && boxes[from] && boxes[to];
      this.paths[name] = drawn && this.layout.path(name, boxes[from], boxes[to], boxes);
      if (this.paths[name]) this.drawRail(name, this.paths[name]);
    }
  }

  drawRail(name, [[x1, y1], [x2, y2]]) {
    const length = Math.hypot(x2 - x1, y2 - y1);
    const [ux, uy] = [(x2 - x1) / length, (y2 - y1) / length];
    const tip = 6;
    const line = document.createElementNS(SVG, "path");
    line.setAttribute("class", "rail-" + name);
    line.setAttribute("d", `M${x1} ${y1}L${x2 - ux * tip} ${y2 - uy * tip}`);
    const head = document.createElementNS(SVG, "path");
    head.setAttribute("class", "head");
    head.setAttribute("d", `M${x2} ${y2}l${-ux * 8 - uy * 4} ${-uy * 8 + ux * 4}l${uy * 8} ${-ux * 8}Z`);
    this.svg.append(line, head);
    if (!this.layout.labels) return;
    const label = document.createElementNS(SVG, "text");
    label.textContent = t("rail." + name);
    const across = Math.abs(uy) > Math.abs(ux);
    // Tokens pass in the middle: the label is above them, or behind their end.
    const side = name === "wire" ? -1 : 1; // the requests are on its right
    label.setAttribute("x", (x1 + x2) / 2 + (across ? side * LABEL_PX : 0));
    label.setAttribute("y", (y1 + y2) / 2 + (across ? 4 : -14));
    label.setAttribute("class", !across ? "above" : side < 0 ? "before" : "beside");
    this.svg.append(label);
  }

  /** launch sends a token for each hop along a rail, or counts the hops that are too many. */
  launch(rail, hops, travel) {
    const path = this.paths[rail];
    if (!path) return;
    const crowded = hops.length > this.layout.most;
    hops.forEach((hop, i) => {
      if (!isOne(rail, hop) || crowded || this.flying >= MAX_TOKENS) this.join(rail, path, hop);
      else this.fly(path, this.token(hop), travel, i - (hops.length - 1) / 2);
    });
  }

  token(hop) {
    const element = document.createElement("span");
    element.className = cx("token", hop.key ? colourOf(hop.key) : "message",
      hop.error && "failed", hop.detail?.includes("tombstone") && "ghost");
    element.textContent = hop.key ? shortName(hop.key) : messageOf(hop);
    return element;
  }

  /** join adds a hop to the crowd that waits for its rail, and sends the crowd if the rail is free. */
  join(rail, path, hop) {
    const crowd = (this.crowds[rail] ??= { waiting: 0, flying: false });
    crowd.waiting += hop.key ? 1 : Number.parseInt(hop.detail, 10) || 1;
    if (crowd.flying) return;
    crowd.flying = true;
    const element = document.createElement("span");
    element.className = "token crowd";
    element.textContent = "×" + crowd.waiting;
    crowd.waiting = 0;
    this.fly(path, element, CROWD_MS, 0, () => (crowd.flying = false));
  }

  /** fly moves a token along a path. Tokens that travel together are side by side. */
  fly([[x1, y1], [x2, y2]], element, duration, row, then) {
    this.flying++;
    this.layer.append(element);
    const place = (x, y) => this.place(x, y, row);
    const animation = element.animate(
      [
        { transform: place(x1, y1), opacity: 0 },
        { transform: place(x1, y1), opacity: 1, offset: 0.12 },
        { transform: place(x2, y2), opacity: 1, offset: 0.85 },
        { transform: place(x2, y2), opacity: 0 },
      ],
      { duration, easing: "ease-in-out", fill: "both" },
    );
    animation.onfinish = animation.oncancel = () => {
      this.flying--;
      element.remove();
      then?.();
    };
  }

  /** place is the transform of a token, which is beside others. */
  place(x, y, row) {
    const [across, down] = this.layout.distance;
    return `translate(${x + row * across}px, ${y + row * down}px) translate(-50%, -50%)`;
  }

  /** hold shows the hops that a paused program keeps back, as tokens that rest on their rails. */
  hold(held) {
    const signature = held.map((hop) => hop.hop + hop.what + hop.key).join();
    if (signature === this.heldSignature) return;
    this.heldSignature = signature;
    for (const element of this.layer.querySelectorAll(".held")) element.remove();
    const onRail = {};
    for (const hop of held) {
      const [rail] = railsOf(hop);
      if (!this.paths[rail] || (onRail[rail] ?? 0) >= this.layout.most) continue;
      const [[x1, y1], [x2, y2]] = this.paths[rail];
      const row = (onRail[rail] = (onRail[rail] ?? 0) + 1) - 1;
      const element = this.token(hop);
      element.classList.add("held");
      element.style.transform = this.place((x1 + x2) / 2, (y1 + y2) / 2, row);
      this.layer.append(element);
    }
  }

  /** clear removes all tokens: the recording was moved, or another key is followed. */
  clear() {
    for (const animation of this.layer.getAnimations({ subtree: true })) animation.cancel();
  }
}

/** route returns the two ends of the straight rail between two boxes, or null if they overlap. */
function route(a, b) {
  const middle = (lo1, hi1, lo2, hi2) => (Math.max(lo1, lo2) + Math.min(hi1, hi2)) / 2;
  const y = Math.min(middle(a.top, a.bottom, b.top, b.bottom), Math.max(a.top, b.top) + 78);
  const x = middle(a.left, a.right, b.left, b.right);
  const gap = 3;
  const ends = (x1, y1, x2, y2) => [[x1, y1], [x2, y2]];
  if (a.right <= b.left) return rowOf(a, b) ? ends(a.right + gap, y, b.left - gap, y) : null;
  if (b.right <= a.left) return rowOf(a, b) ? ends(a.left - gap, y, b.right + gap, y) : null;
  if (a.bottom <= b.top) return b.top - a.bottom < 160 ? ends(x, a.bottom + gap, x, b.top - gap) : null;
  if (b.bottom <= a.top) return a.top - b.bottom < 160 ? ends(x, a.top - gap, x, b.bottom + gap) : null;
  return null;
}

/** ASIDE_PX is how far the requests are beside the rail of the watch. */
const ASIDE_PX = 58;

/** aside moves the rail of the requests beside that of the answers, which has the same ends. */
function aside(name, path) {
  if (name !== "ask" || !path) return path;
  const across = path[0][1] === path[1][1] ? [0, ASIDE_PX] : [ASIDE_PX, 0];
  return path.map(([x, y]) => [x + across[0], y + across[1]]);
}

/** rowOf reports whether two boxes are beside each other. */
const rowOf = (a, b) => a.top < b.bottom && b.top < a.bottom;

/**
 * A layout says where the rails are, whether they have labels, how many tokens of one frame are
 * readable on one rail, and the distance of tokens that are side by side.
 *
 * between is that of the cards: straight from one to the other.
 */
const between = {
  path: (name, a, b) => aside(name, route(a, b)),
  labels: true, most: 5, distance: [0, 23],
};

/** LANE_PX is how far the two lanes of the strip are below its first row: forth, and back. */
const LANE_PX = { forth: 8, back: 22 };

/** beside is that of the strip: below its first row, so that no token covers a text. */
const beside = {
  path(name, a, b, { server }) {
    const middle = ({ left, right }) => (left + right) / 2;
    const [x1, x2] = [middle(a), middle(b)];
    if (Math.abs(x1 - x2) < 1) return [[x1, a.bottom], [x2, b.top]]; // from row to row
    const y = server.bottom + (x1 < x2 ? LANE_PX.forth : LANE_PX.back);
    return [[x1, y], [x2, y]];
  },
  labels: false, most: 1, distance: [0, 0],
};
return { Flow, between, beside };
})();

modules["header.js"] = (() => {
// SPDX-License-Identifier: Apache-2.0

/** The top of the page: time control, the reader's settings, and the state line. */
const { html, cx } = modules["html.js"];
const { ActionButton, action, keyName, offered, perform } = modules["actions.js"];
const { Chip, duration, number } = modules["key.js"];
const { whatOf } = modules["model.js"];
const { named, t, translated } = modules["text.js"];

/** DELAYS are the positions of the slow-motion slider: milliseconds per hop, 0 for full speed. */
const DELAYS = [0, 50, 100, 200, 400, 800, 1500, 3000];

function Header({ lab }) {
  return html`<header class="top">
    <h1><span class="mark" aria-hidden="true"></span>informerstack <em>${t("laboratory")}</em></h1>
    ${lab.recorded ? html`<${ReplayControl} lab=${lab} />` : html`<${TimeControl} lab=${lab} />`}
    <div class="spacer"></div>
    <nav class="tools" aria-label=${t("tools")}>
      ${lab.files && html`<a class="btn" href=${lab.files + translated("docs/README.md")}
        target="_blank" rel="noreferrer">${t("docs")}</a>`}
      ${TOOLS.map((id) => html`<${Tool} key=${id} lab=${lab} id=${id} />`)}
    </nav>
  </header>`;
}

const TOOLS = ["settings", "language", "theme", "help"];
const TOOL_ICONS = { settings: "⚙", theme: "◐", help: "?" };

function Tool({ lab, id }) {
  const a = action(id);
  if (!offered(lab, a)) return null;
  const label = t(`action.${id}.name`);
  return html`<button type="button" class=${"btn icon tool-" + id} title=${`${label} (${a.key})`}
    aria-label=${TOOL_ICONS[id] && label}
    lang=${id === "language" ? t("otherLanguage") : undefined}
    aria-keyshortcuts=${a.key} onClick=${() => perform(lab, a)}>
    ${TOOL_ICONS[id] ?? t(`action.${id}.icon`)}</button>`;
}

/** TimeControl runs, pauses, steps and slows down a live program. */
function TimeControl({ lab }) {
  const paused = lab.frame?.mode === "pause";
  const position = DELAYS.findLastIndex((delay) => delay <= lab.ui.delayMs);
  return html`<div class=${cx("time", paused && "paused")} role="group" aria-label=${t("time")}>
    <${ActionButton} lab=${lab} id="run" label=${paused ? t("run") : t("pause")} />
    <${ActionButton} lab=${lab} id="back" label="‹" />
    <${ActionButton} lab=${lab} id="step" />
    <label class="slow"><span>${t("slow")}</span>
      <input type="range" min="0" max=${DELAYS.length - 1} step="1" value=${position} aria-label=${t("slow")}
        disabled=${lab.ui.connection !== "connected"}
        aria-valuetext=${delayText(lab.ui.delayMs)}
        onInput=${(event) => lab.setDelay(DELAYS[event.target.value])} />
      <output>${delayText(lab.ui.delayMs)}</output></label>
  </div>`;
}

const delayText = (ms) => (ms > 0 ? t("perHop", { delay: duration(ms) }) : t("fullSpeed"));

const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 5];

/** ReplayControl moves through a recording. */
function ReplayControl({ lab }) {
  const source = lab.recorded;
  return html`<div class=${cx("time", lab.past && "past")} role="group" aria-label=${t("replay")}>
    ${lab.past && html`<${ActionButton} lab=${lab} id="live" label=${t("live")} />`}
    <button type="button" class=${cx("btn", source.playing && "on")} aria-keyshortcuts="Space"
      onClick=${() => (source.playing ? source.pause() : source.play())}>
      ${source.playing ? t("pause") : t("play")} <kbd>${keyName(" ")}</kbd></button>
    <button type="button" class="btn icon" aria-label=${t("frameBack")}
      onClick=${() => lab.move(-1)}>‹</button>
    <button type="button" class="btn icon" aria-label=${t("frameOn")}
      onClick=${() => lab.move(+1)}>›</button>
    <label class="seek"><span class="hidden">${t("position")}</span>
      <input type="range" min="0" max=${Math.max(10, Math.ceil(source.length / 10) * 10)} step="10"
        value=${Math.round(source.at)} aria-valuetext=${clock(source.at)}
        onInput=${(event) => source.seek(Number(event.target.value))} />
      <output>${clock(source.at)} / ${clock(source.length)}</output></label>
    <label><span class="hidden">${t("replaySpeed")}</span>
      <select value=${String(source.speed)}
        onChange=${(event) => (source.speed = Number(event.target.value))}>
        ${SPEEDS.map((n) => html`<option key=${n} value=${String(n)}>×${n}</option>`)}
      </select></label>
  </div>`;
}

/** clock writes milliseconds as minutes and seconds. */
function clock(ms) {
  const tenths = Math.round(ms / 100);
  const seconds = Math.floor(tenths / 10);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}.${tenths % 10}`;
}

/** RANDOM_FAULTS are the states of the random faults that the page names. */
const RANDOM_FAULTS = ["on", "paused"];

/** StateLine reports what the cards do not: the connection, what is followed, held, not drawn. */
function StateLine({ lab }) {
  const { frame, model, ui } = lab;
  const { events, perSecond } = frame?.counters ?? {};
  const readOnly = lab.source.live && model.hello && !model.hello.writable;
  return html`<section class=${cx("state", ui.connection)} aria-label=${t("stateLine")}>
    <span class="connection"><i aria-hidden="true"></i>${t("connection." + ui.connection)}</span>
    ${model.hello && html`<span>${frame?.reflector?.kind?.resource ?? model.hello.resource ?? ""}</span>`}
    ${readOnly && html`<span class="badge">${t("readOnly")}</span>`}
    ${frame && html`<span>${t("events", {
      n: number(events), rate: number(Math.round(perSecond ?? 0)),
    })}</span>`}
    ${RANDOM_FAULTS.includes(frame?.settings?.faults) && html`<span class="badge warn"
      title=${t("randomFaults.help")}>${t("randomFaults." + frame.settings.faults)}</span>`}
    ${model.leftOut > 0 && html`<span class="badge warn" title=${t("sampledHelp")}>
      ${t("sampled", { n: number(model.leftOut) })}</span>`}
    ${lab.ui.follow && html`<div class="following">
      <span class="dim">${t("following")}</span>
      <${Chip} id=${lab.ui.follow} follow=${lab.ui.follow} full first />
      <button type="button" class="btn icon" title=${t("action.unfollow.help")}
        aria-label=${t("action.unfollow.name")}
        onClick=${() => lab.follow("")}>×</button></div>`}
    ${frame?.mode === "pause" && html`<${Held} held=${frame.held ?? []} follow=${ui.follow} />`}
  </section>`;
}

/** HELD is how many held events are named; all of them are counted. */
const HELD = 3;

/** Held names the events that a paused program keeps back, the next one first. */
function Held({ held, follow }) {
  return html`<span class="badge warn">
      ${held.length ? t("held", { n: held.length }) : t("paused")}</span>
    ${held.slice(0, HELD).map((hop, i) => html`<span key=${i} class="heldHop">
      ${named("hop", hop.hop)} ${whatOf(hop)}${" "}
      ${hop.key && html`<${Chip} id=${hop.key} follow=${follow} first />`}</span>`)}`;
}
return { DELAYS, Header, StateLine };
})();

modules["journey.js"] = (() => {
// SPDX-License-Identifier: Apache-2.0

/** The journey of one change as a swimlane, with the time of each hop. */
const { html, cx } = modules["html.js"];
const { Chip, colourOf, duration } = modules["key.js"];
const { journeysOf, lanesOf, staysOf, whatOf } = modules["model.js"];
const { t } = modules["text.js"];

const LANES = ["server", "deltafifo", "store", "handler", "workqueue", "worker"];

/** MAX_MOMENTS is how many hops of one journey are listed. */
const MAX_MOMENTS = 24;

/** Journey shows the newest journey of the followed key, or of the key that moved last. */
function Journey({ lab }) {
  const { key, journeys } = lab.ui.follow
    ? { key: lab.ui.follow, journeys: journeysOf(lab.model.hops, lab.ui.follow) }
    : lab.model.exampleJourney(lab.now);
  const back = Math.min(lab.ui.journeysBack ?? 0, Math.max(0, journeys.length - 1));
  const journey = journeys.at(-1 - back);
  const turn = (journeysBack) => lab.set({ journeysBack });
  return html`<section class="card journey" aria-labelledby="title-journey">
    <header>
      <h2 id="title-journey">${t("journey.title")}</h2>
      ${key && html`<${Chip} id=${key} follow=${lab.ui.follow} full first />`}
      ${journey?.rv && html`<span class="rv">@${journey.rv}</span>`}
      <small>${journey && t("journey.total", { time: duration(lengthOf(journey)) })}</small>
      ${lab.ui.follow && journeys.length > 1 && html`<span class="pager">
        <button type="button" class="btn" aria-label=${t("journey.earlier")}
          disabled=${back >= journeys.length - 1} onClick=${() => turn(back + 1)}>‹</button>
        <span class="dim">${journeys.length - back}/${journeys.length}</span>
        <button type="button" class="btn" aria-label=${t("journey.later")}
          disabled=${back === 0} onClick=${() => turn(back - 1)}>›</button></span>`}
    </header>
    ${journey ? html`<${Swimlane} journey=${journey} colour=${colourOf(key)} /><${Stays} journey=${journey} />`
      : html`<p class="dim empty">${t("journey.empty")}</p>`}
    <p class="note">${lab.ui.follow ? t("journey.following") : t("journey.note")}</p>
  </section>`;
}

const lengthOf = (journey) => journey.hops.at(-1).at - journey.hops[0].at;

function Swimlane({ journey, colour }) {
  const lanes = lanesOf(journey, LANES);
  const total = Math.max(lengthOf(journey), 0.001);
  const share = (ms) => (Math.min(Math.max(ms, 0), total) / total) * 100;
  const span = ([from, to]) =>
    ({ left: share(from) + "%", width: Math.max(share(to) - share(from), 0.4) + "%" });
  return html`<div class=${"lanes " + colour + "-line"}>
    ${lanes.map(({ name, moments, spans }) => {
      const named = moments.filter(({ what }) => what !== "Forget" && what !== "Done");
      const first = named[0] ?? moments[0];
      const shown = moments.slice(0, MAX_MOMENTS);
      return html`<div key=${name} class=${cx("lane", !moments.length && "missed")}>
        <b>${t("hop." + name)}</b>
        <span class="track">
          ${spans.map((ends, i) => html`<i key=${"span" + i} class="span" style=${span(ends)}></i>`)}
          ${shown.map(({ n, ms, detail = "", error = "" }, i) => html`
            <i key=${n} class=${cx("dot", error && "failed")} style=${{ left: share(ms) + "%" }}
              title=${`${whatOf(shown[i])} +${duration(ms)} ${detail} ${error}`}></i>`)}
        </span>
        <span class="what">${first
          ? html`<span class="rv">+${duration(first.ms)}</span> ${summary(named.length ? named : moments)}`
          : html`<span class="dim">${t("journey.notYet")}</span>`}</span>
      </div>`;
    })}
  </div>`;
}

/** Stays is one bar: where the time of a journey went. */
function Stays({ journey }) {
  const stays = staysOf(journey);
  const total = Math.max(stays.reduce((sum, { ms }) => sum + ms, 0), 0.001);
  return html`<div class="stays">
    <span class="bar" aria-hidden="true">${stays.map(({ name, ms }, i) => html`
      <i key=${name} class=${"p" + i} style=${{ width: (ms / total) * 100 + "%" }}></i>`)}</span>
    <ul class="legend">${stays.map(({ name, ms }, i) => html`<li key=${name}>
      <i class=${"p" + i} aria-hidden="true"></i>${t("hop." + name)} <b>${duration(ms)}</b></li>`)}</ul>
  </div>`;
}

/** summary names the events of a lane in order; repeated ones are counted. */
function summary(moments) {
  const parts = [];
  for (const what of moments.map(whatOf)) {
    if (parts.at(-1)?.what === what) parts.at(-1).n++;
    else parts.push({ what, n: 1 });
  }
  const words = parts.slice(-2).map(({ what, n }) => (n > 1 ? `${what} ×${n}` : what));
  return words.join(" → ");
}
return { Journey };
})();

modules["keyboard.js"] = (() => {
// SPDX-License-Identifier: Apache-2.0

/** The keyboard and the clicks on keys, for the whole page. */
const { ACTIONS, offered, perform } = modules["actions.js"];
const { turn } = modules["lessons.js"];

const ARROWS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

/** TURNS are the keys of a teacher, and of the remote control of slides. */
const TURNS = { ArrowRight: 1, PageDown: 1, ArrowLeft: -1, PageUp: -1 };

/** SLIP_PX is how far a pointer may move while it is pressed on a key. */
const SLIP_PX = 8;

const keyOf = (event) => event.target.closest?.("[data-key]")?.dataset.key;

/**
 * listenForKeys follows the key that a pointer was pressed on. Lists change while it is pressed, and
 * then the browser makes no click, or one on another key.
 */
function listenForKeys(lab) {
  const toggle = (key) => key && lab.follow(key === lab.ui.follow ? "" : key);
  let pressed = null;
  document.addEventListener("pointerdown", (event) => {
    const first = event.isPrimary && event.button === 0;
    pressed = first ? { key: keyOf(event), x: event.clientX, y: event.clientY } : null;
  });
  document.addEventListener("pointercancel", () => (pressed = null)); // the page is scrolled
  document.addEventListener("pointerup", (event) => {
    const slip = pressed && Math.hypot(event.clientX - pressed.x, event.clientY - pressed.y);
    if (pressed && slip <= SLIP_PX) toggle(pressed.key);
    pressed = null;
  });
  document.addEventListener("click", (event) => {
    if (event.detail === 0) toggle(keyOf(event)); // by the keyboard, or by a screen reader
  });
}

function listen(lab) {
  listenForKeys(lab);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (moveBetweenChips(event) || typing(event) || lab.ui.dialog) return;
    // Space and Enter press the focused button, as everywhere.
    if (event.key === " " && event.target.closest?.("button, summary, a")) return;
    if (lab.ui.teach && event.key in TURNS && turn(lab, TURNS[event.key])) return event.preventDefault();
    if (lab.recorded && replayKey(lab, event)) return;
    const found = ACTIONS.find((a) => a.key === event.key && offered(lab, a));
    if (!found || (event.repeat && found.id !== "step")) return;
    event.preventDefault();
    perform(lab, found);
  });
}

/** typing reports whether a key belongs to the element that has the focus. */
function typing({ target, key }) {
  if (target.type === "range" || target.type === "radio") return key in ARROWS;
  return Boolean(target.closest?.("input, select, textarea"));
}

/** moveBetweenChips moves the focus within a list of keys, which is one tab stop. */
function moveBetweenChips(event) {
  const by = ARROWS[event.key];
  const chip = event.target.closest?.(".chip");
  if (!by || !chip) return false;
  const list = chip.closest(".rows, .chips, .card, .panel") ?? document;
  const chips = [...list.querySelectorAll(".chip")];
  chips[chips.indexOf(chip) + by]?.focus();
  event.preventDefault();
  return true;
}

/** replayKey moves a recording. */
function replayKey(lab, event) {
  switch (event.key) {
    case " ":
      lab.recorded.playing ? lab.recorded.pause() : lab.recorded.play();
      break;
    case "ArrowRight":
      lab.move(+1);
      break;
    case "ArrowLeft":
      lab.move(-1);
      break;
    default:
      return false;
  }
  event.preventDefault();
  return true;
}
return { listen };
})();

modules["code.js"] = (() => {
// SPDX-License-Identifier: Apache-2.0

/** The learner's code: a controller with the line where a key is, and switches that change lines. */
const { html, cx } = modules["html.js"];
const { ActionButton } = modules["actions.js"];
const { Chip } = modules["key.js"];
const { whatOf } = modules["model.js"];
const { Prose } = modules["prose.js"];
const { named, t } = modules["text.js"];

/** TRIES are the actions that show the consequence of a change. */
const TRIES = { done: ["change"], add: ["fail", "change"], forget: ["fail", "change"], slow: ["workload"] };

function Code({ lab }) {
  const { lines, changes } = lab.model.hello.code;
  const made = changes.filter(({ id }) => lab.frame?.code?.changes.includes(id));
  const place = placeOf(lab, made);
  return html`<article class="code">
    <h2 tabindex="-1">${t("code.title")}</h2>
    <p class="dim">${t("code.intro")}</p>
    <ol class="source">${lines.map((line, i) => html`<${Line} key=${i} lab=${lab} line=${line}
      now=${place.line === i} passed=${place.passed.has(i)}
      change=${changes.find((change) => change.line === i)} />`)}</ol>
    <p class="place"><${Place} lab=${lab} place=${place} /></p>
    <div class="consequence" role="status">${made.length
      ? made.map(({ id }) => html`<p key=${id}>
          <${Prose} text=${consequence(lab, id)} follow=${lab.ui.follow} /></p>`)
      : html`<p class="dim">${t("code.off")}</p>`}</div>
    <p class="tries">${[...new Set(made.flatMap(({ id }) => TRIES[id]))].map((id) => html`
      <${ActionButton} key=${id} lab=${lab} id=${id} />`)}</p>
  </article>`;
}

/** Line is one line of the code, as it is now, with the switch that changes it. */
function Line({ lab, line, now, passed, change }) {
  const made = change && lab.frame?.code?.changes.includes(change.id);
  return html`<li class=${cx(now && "now", passed && "passed")} aria-current=${now ? "step" : undefined}>
    <span>${made && change.removes ? html`<del>${line}</del>` : line}
      ${made && change.adds && html`<ins>${change.adds}</ins>`}</span>
    ${change && switchable(lab) && html`<button type="button" role="switch" id=${"change-" + change.id}
      class=${cx("btn", made && "on")} aria-checked=${Boolean(made)}
      disabled=${lab.ui.connection !== "connected"}
      onClick=${() => lab.send({ do: "code", id: change.id, on: !made })}>
      ${t(`code.${change.id}.name`)}</button>`}
  </li>`;
}

/** switchable reports whether the program takes changes: not a recording, nor another cluster. */
const switchable = (lab) => lab.source.live && lab.model.hello.writable === true;

/**
 * placeOf finds where the followed key is, or the next held key, or the newest: the hop that is held,
 * otherwise the last one. passed are the lines of its hops since the handler was called.
 */
function placeOf(lab, made) {
  const held = lab.frame?.mode === "pause" ? (lab.frame.held ?? []) : [];
  const newest = held.find((hop) => hop.key) ?? lab.model.hops.findLast((hop) => hop.key);
  const key = lab.ui.follow || newest?.key;
  const hops = lab.model.hops.filter((hop) => hop.key === key);
  const next = held.find((hop) => hop.key === key);
  if (next) hops.push(next);
  const lines = hops.map((hop, i) => lineOf(lab, made, hop, hops[i - 1]));
  const passed = new Set(lines.slice(hops.findLastIndex((hop) => hop.hop === "handler")));
  return { key, hop: hops.at(-1), held: Boolean(next), line: lines.at(-1), passed };
}

/** lineOf is the line of a hop. An Add after a reconcile is that in place of AddRateLimited. */
function lineOf(lab, made, { hop, what }, before) {
  const again = hop === "workqueue" && what === "Add" && before?.hop === "worker";
  const change = again && made.find(({ id }) => id === "add");
  return change ? change.line : lab.model.hello.code.hops[`${hop} ${what}`];
}

/** Place names the key and its hop. */
function Place({ lab, place: { key, hop, held, line } }) {
  if (!hop) return t("journey.empty");
  return html`<${Chip} id=${key} follow=${lab.ui.follow} first />${" "}
    ${held && t("code.next")} ${named("hop", hop.hop)} <b>${whatOf(hop)}</b>
    ${line == null && html` <span class="dim">${t("code.outside")}</span>`}`;
}

/** consequence says what to watch for after a change. */
function consequence(lab, id) {
  const { undone = [] } = lab.frame.code;
  if (id !== "done" || !undone.length) return t(`code.${id}.ready`);
  const key = undone.includes(lab.ui.follow) ? lab.ui.follow : undone[0];
  return t(lab.frame.workqueue?.dirty?.includes(key) ? "code.done.dirty" : "code.done.stuck", { key });
}
return { Code };
})();

modules["search.js"] = (() => {
// SPDX-License-Identifier: Apache-2.0

/** The search for a key, among all that the store has. */
const { html } = modules["html.js"];
const { Chip } = modules["key.js"];
const { t } = modules["text.js"];

/** search asks the program, and shows the answer unless the reader has typed on. */
async function search(lab, text) {
  lab.set({ search: text });
  if (!text) return;
  const found = await lab.source.find(text);
  if (lab.ui.search === text) lab.set({ found });
}

function Search({ lab }) {
  const { search: text, found, follow } = lab.ui;
  return html`<search class="search">
    <label><span>${t("search.label")} <kbd>/</kbd></span>
      <input type="search" id="search" value=${text} placeholder=${t("search.example")}
        autocomplete="off" spellcheck="false"
        onInput=${(event) => search(lab, event.target.value.trim())} /></label>
    ${text && html`<div class="chips" role="status">
      ${found.map((key, i) => html`<${Chip} key=${key} id=${key} follow=${follow} full first=${i === 0} />`)}
      ${!found.length && html`<span class="dim">${t("search.none")}</span>`}</div>`}
  </search>`;
}
return { Search };
})();

modules["panel.js"] = (() => {
// SPDX-License-Identifier: Apache-2.0

/** The panel beside the pipeline: lessons, code, the piece that was clicked, or the list of events. */
const { html, cx } = modules["html.js"];
const { Code } = modules["code.js"];
const { Chip } = modules["key.js"];
const { Lessons } = modules["lessons.js"];
const { whatOf } = modules["model.js"];
const { Path, Prose } = modules["prose.js"];
const { Search } = modules["search.js"];
const { named, t, translated } = modules["text.js"];

function Panel({ lab }) {
  const playable = lab.source.lesson || (lab.source.live && lab.model.hello?.writable);
  const offers = { lessons: playable, code: lab.model.hello?.code?.lines, piece: true, events: true };
  const tabs = Object.keys(offers).filter((name) => offers[name]);
  const tab = lab.ui.tab && tabs.includes(lab.ui.tab) ? lab.ui.tab : null;
  return html`<aside class=${cx("panel", !tab && "closed")} aria-label=${t("panel")}>
    <div class="tabs" role="group" aria-label=${t("panel")}>
      ${tabs.map((name) => html`<button key=${name} type="button" class=${cx("tab", name === tab && "on")}
        aria-pressed=${name === tab}
        onClick=${() => lab.set({ tab: name === tab ? null : name })}>${t("tab." + name)}</button>`)}
    </div>
    ${tab && html`<div class="sheet">
      ${tab === "lessons" && html`<${Lessons} lab=${lab} />`}
      ${tab === "code" && html`<${Code} lab=${lab} />`}
      ${tab === "piece" && html`<${Piece} lab=${lab} />`}
      ${tab === "events" && html`<${Events} lab=${lab} />`}
    </div>`}
  </aside>`;
}

/** PIECES names the code and the chapter of each piece. */
const PIECES = {
  server: { files: ["apitest/server.go"], chapter: "docs/apitest.md" },
  reflector: { files: ["reflector/phase.go", "reflector/reflector.go"], chapter: "docs/reflector.md" },
  queue: { files: ["deltafifo/deltafifo.go", "deltafifo/realfifo.go"], chapter: "docs/deltafifo.md" },
  store: {
    files: ["store/threadsafemap.go", "store/key.go", "internal/freshness/freshness.go"],
    chapter: "docs/store.md", more: "docs/freshness.md",
  },
  handlers: { files: ["informer/changelog.go", "informer/processor.go"], chapter: "docs/informer.md" },
  workqueue: { files: ["workqueue/queue.go", "workqueue/delaying.go"], chapter: "docs/workqueue.md", more: "docs/fairness.md" },
  workers: { files: ["controller/worker.go", "controller/controller.go"], chapter: "docs/controller.md" },
  election: {
    files: ["leaderelection/elector.go", "leaderelection/phase.go"], chapter: "docs/leaderelection.md",
  },
};

/** Piece explains one piece: what it is, what always holds, and where to read more. */
function Piece({ lab }) {
  const name = PIECES[lab.ui.piece] ? lab.ui.piece : null;
  if (!name) return html`<p class="dim">${t("pieceNone")}</p>`;
  const text = t("piece." + name);
  return html`<article class="piece">
    <h2 tabindex="-1" id="panel-heading">${text.title ?? text.name}</h2>
    <p><${Prose} text=${text.what} follow=${lab.ui.follow} /></p>
    <h3>${t("invariant")}</h3>
    <ul class="laws">${text.laws.map((law, i) => html`<li key=${i}><${Prose} text=${law} /></li>`)}</ul>
    <h3>${t("mistake")}</h3>
    <p><${Prose} text=${text.mistake} /></p>
    <h3>${t("readOn")}</h3>
    <ul class="links">
      ${PIECES[name].files.map((file) => html`<li key=${file}>
        ${t("link.code")} <${Path} lab=${lab} path=${file} /></li>`)}
      ${[PIECES[name].chapter, PIECES[name].more].filter(Boolean).map((path) => html`<li key=${path}>
        ${t("link.chapter")} <${Path} lab=${lab} path=${translated(path)} /></li>`)}
    </ul>
  </article>`;
}

const EVENTS = 60;

/** Events lists the newest hops as text: what the tokens show, for reading. */
function Events({ lab }) {
  const { follow } = lab.ui;
  const hops = lab.model.hops.filter((hop) => !follow || hop.key === follow).slice(-EVENTS).reverse();
  return html`<article class="events">
    <h2>${t("tab.events")}</h2>
    <p class="dim">${t("eventsNote", { n: EVENTS })}</p>
    <${Search} lab=${lab} />
    <ol>${hops.map((hop) => html`<li key=${hop.n}>
      <time>${hop.t.slice(11, 23)}</time>
      <span class="hop">${named("hop", hop.hop)}</span> <b>${whatOf(hop)}</b>
      ${hop.key && html` <${Chip} id=${hop.key} follow=${follow} />`}
      ${hop.rv && html` <span class="rv">@${hop.rv}</span>`}
      ${hop.detail && html` <span class="dim">${hop.detail}</span>`}
      ${hop.error && html` <span class="hot">${hop.error}</span>`}
    </li>`)}</ol>
  </article>`;
}
return { Panel };
})();

modules["vendor/uplot.mjs"] = (() => {
const Uf=!0,Kf="u-",Js="uplot",Zs="u-hz",Qs="u-vt",Xs="u-title",er="u-wrap",tr="u-under",lr="u-over",nr="u-axis",$t="u-off",ir="u-select",or="u-cursor-x",sr="u-cursor-y",rr="u-cursor-pt",fr="u-legend",ur="u-live",cr="u-inline",ar="u-series",pr="u-marker",ji="u-label",hr="u-value",Hl="width",Nl="height",jf="top",qi="bottom",yl="left",Wn="right",Gn="#000",$i=Gn+"0",In="mousemove",Ji="mousedown",Yn="mouseup",Zi="mouseenter",Qi="mouseleave",Xi="dblclick",mr="resize",gr="scroll",eo="change",tn="dppxchange",Bn="--",vl=typeof window<"u",Un=vl?document:null,kl=vl?window:null,dr=vl?navigator:null;let oe,ln;function Kn(){let e=devicePixelRatio;oe!=e&&(oe=e,ln&&$n(eo,ln,Kn),ln=matchMedia(`(min-resolution: ${oe-.001}dppx) and (max-resolution: ${oe+.001}dppx)`),Jt(eo,ln,Kn),kl.dispatchEvent(new CustomEvent(tn)))}function Xe(e,i){if(i!=null){let o=e.classList;!o.contains(i)&&o.add(i)}}function jn(e,i){let o=e.classList;o.contains(i)&&o.remove(i)}function de(e,i,o){e.style[i]=o+"px"}function gt(e,i,o,n){let s=Un.createElement(e);return i!=null&&Xe(s,i),o?.insertBefore(s,n),s}function ft(e,i){return gt("div",e,i)}const to=new WeakMap;function bt(e,i,o,n,s){let a="translate("+i+"px,"+o+"px)",u=to.get(e);a!=u&&(e.style.transform=a,to.set(e,a),i<0||o<0||i>n||o>s?Xe(e,$t):jn(e,$t))}const lo=new WeakMap;function no(e,i,o){let n=i+o,s=lo.get(e);n!=s&&(lo.set(e,n),e.style.background=i,e.style.borderColor=o)}const io=new WeakMap;function oo(e,i,o,n){let s=i+""+o,a=io.get(e);s!=a&&(io.set(e,s),e.style.height=o+"px",e.style.width=i+"px",e.style.marginLeft=n?-i/2+"px":0,e.style.marginTop=n?-o/2+"px":0)}const qn={passive:!0},wr={...qn,capture:!0};function Jt(e,i,o,n){i.addEventListener(e,o,n?wr:qn)}function $n(e,i,o,n){i.removeEventListener(e,o,qn)}vl&&Kn();function dt(e,i,o,n){let s;o=o||0,n=n||i.length-1;let a=n<=2147483647;for(;n-o>1;)s=a?o+n>>1:tt((o+n)/2),i[s]<e?o=s:n=s;return e-i[o]<=i[n]-e?o:n}function so(e){return(o,n,s)=>{let a=-1,u=-1;for(let h=n;h<=s;h++)if(e(o[h])){a=h;break}for(let h=s;h>=n;h--)if(e(o[h])){u=h;break}return[a,u]}}const ro=e=>e!=null,fo=e=>e!=null&&e>0,nn=so(ro),Sr=so(fo);function _r(e,i,o,n=0,s=!1){let a=s?Sr:nn,u=s?fo:ro;[i,o]=a(e,i,o);let h=e[i],m=e[i];if(i>-1)if(n==1)h=e[i],m=e[o];else if(n==-1)h=e[o],m=e[i];else for(let g=i;g<=o;g++){let y=e[g];u(y)&&(y<h?h=y:y>m&&(m=y))}return[h??ce,m??-ce]}function on(e,i,o,n){let s=ao(e),a=ao(i);e==i&&(s==-1?(e*=o,i/=o):(e/=o,i*=o));let u=o==10?Pt:po,h=s==1?tt:ut,m=a==1?ut:tt,g=h(u(Ae(e))),y=m(u(Ae(i))),d=xl(o,g),w=xl(o,y);return o==10&&(g<0&&(d=ae(d,-g)),y<0&&(w=ae(w,-y))),n||o==2?(e=d*s,i=w*a):(e=yo(e,d),i=fn(i,w)),[e,i]}function Jn(e,i,o,n){let s=on(e,i,o,n);return e==0&&(s[0]=0),i==0&&(s[1]=0),s}const Zn=.1,uo={mode:3,pad:Zn},Wl={pad:0,soft:null,mode:0},yr={min:Wl,max:Wl};function sn(e,i,o,n){return un(o)?co(e,i,o):(Wl.pad=o,Wl.soft=n?0:null,Wl.mode=n?3:0,co(e,i,yr))}function ne(e,i){return e??i}function vr(e,i,o){for(i=ne(i,0),o=ne(o,e.length-1);i<=o;){if(e[i]!=null)return!0;i++}return!1}function co(e,i,o){let n=o.min,s=o.max,a=ne(n.pad,0),u=ne(s.pad,0),h=ne(n.hard,-ce),m=ne(s.hard,ce),g=ne(n.soft,ce),y=ne(s.soft,-ce),d=ne(n.mode,0),w=ne(s.mode,0),L=i-e,D=Pt(L),O=Be(Ae(e),Ae(i)),N=Pt(O),G=Ae(N-D);(L<1e-24||G>10)&&(L=0,(e==0||i==0)&&(L=1e-24,d==2&&g!=ce&&(a=0),w==2&&y!=-ce&&(u=0)));let k=L||O||1e3,H=Pt(k),x=xl(10,tt(H)),q=k*(L==0?e==0?.1:1:a),P=ae(yo(e-q,x/10),24),$=e>=g&&(d==1||d==3&&P<=g||d==2&&P>=g)?g:ce,U=Be(h,P<$&&e>=$?$:wt($,P)),Q=k*(L==0?i==0?.1:1:u),B=ae(fn(i+Q,x/10),24),T=i<=y&&(w==1||w==3&&B>=y||w==2&&B<=y)?y:-ce,j=wt(m,B>T&&i<=T?T:Be(T,B));return U==j&&U==0&&(j=100),[U,j]}const kr=new Intl.NumberFormat(vl?dr.language:"en-US"),Qn=e=>kr.format(e),et=Math,rn=et.PI,Ae=et.abs,tt=et.floor,Ee=et.round,ut=et.ceil,wt=et.min,Be=et.max,xl=et.pow,ao=et.sign,Pt=et.log10,po=et.log2,xr=(e,i=1)=>et.sinh(e)*i,Xn=(e,i=1)=>et.asinh(e/i),ce=1/0;function ho(e){return(Pt((e^e>>31)-(e>>31))|0)+1}function ei(e,i,o){return wt(Be(e,i),o)}function mo(e){return typeof e=="function"}function X(e){return mo(e)?e:()=>e}const Tr=()=>{},go=e=>e,wo=(e,i)=>i,br=e=>null,So=e=>!0,_o=(e,i)=>e==i,Mr=/\.\d*?(?=9{6,}|0{6,})/gm,Zt=e=>{if(ko(e)||Ot.has(e))return e;const i=`${e}`,o=i.match(Mr);if(o==null)return e;let n=o[0].length-1;if(i.indexOf("e-")!=-1){let[s,a]=i.split("e");return+`${Zt(s)}e${a}`}return ae(e,n)};function Qt(e,i){return Zt(ae(Zt(e/i))*i)}function fn(e,i){return Zt(ut(Zt(e/i))*i)}function yo(e,i){return Zt(tt(Zt(e/i))*i)}function ae(e,i=0){if(ko(e))return e;let o=10**i,n=e*o*(1+Number.EPSILON);return Ee(n)/o}const Ot=new Map;function vo(e){return((""+e).split(".")[1]||"").length}function Gl(e,i,o,n){let s=[],a=n.map(vo);for(let u=i;u<o;u++){let h=Ae(u),m=ae(xl(e,u),h);for(let g=0;g<n.length;g++){let y=e==10?+`${n[g]}e${u}`:n[g]*m,d=(u>=0?0:h)+(u>=a[g]?0:a[g]),w=e==10?y:ae(y,d);s.push(w),Ot.set(w,d)}}return s}const Il={},ti=[],Tl=[null,null],Ht=Array.isArray,ko=Number.isInteger,Ar=e=>e===void 0;function xo(e){return typeof e=="string"}function un(e){let i=!1;if(e!=null){let o=e.constructor;i=o==null||o==Object}return i}function Er(e){return e!=null&&typeof e=="object"}const Pr=Object.getPrototypeOf(Uint8Array),To="__proto__";function bl(e,i=un){let o;if(Ht(e)){let n=e.find(s=>s!=null);if(Ht(n)||i(n)){o=Array(e.length);for(let s=0;s<e.length;s++)o[s]=bl(e[s],i)}else o=e.slice()}else if(e instanceof Pr)o=e.slice();else if(i(e)){o={};for(let n in e)n!=To&&(o[n]=bl(e[n],i))}else o=e;return o}function Te(e){let i=arguments;for(let o=1;o<i.length;o++){let n=i[o];for(let s in n)s!=To&&(un(e[s])?Te(e[s],bl(n[s])):e[s]=bl(n[s]))}return e}const Dr=0,Lr=1,Cr=2;function Vr(e,i,o){for(let n=0,s,a=-1;n<i.length;n++){let u=i[n];if(u>a){for(s=u-1;s>=0&&e[s]==null;)e[s--]=null;for(s=u+1;s<o&&e[s]==null;)e[a=s++]=null}}}function Rr(e,i){if(Or(e)){let u=e[0].slice();for(let h=1;h<e.length;h++)u.push(...e[h].slice(1));return Hr(u[0])||(u=Fr(u)),u}let o=new Set;for(let u=0;u<e.length;u++){let m=e[u][0],g=m.length;for(let y=0;y<g;y++)o.add(m[y])}let n=[Array.from(o).sort((u,h)=>u-h)],s=n[0].length,a=new Map;for(let u=0;u<s;u++)a.set(n[0][u],u);for(let u=0;u<e.length;u++){let h=e[u],m=h[0];for(let g=1;g<h.length;g++){let y=h[g],d=Array(s).fill(void 0),w=i?i[u][g]:Lr,L=[];for(let D=0;D<y.length;D++){let O=y[D],N=a.get(m[D]);O===null?w!=Dr&&(d[N]=O,w==Cr&&L.push(N)):d[N]=O}Vr(d,L,s),n.push(d)}}return n}const zr=typeof queueMicrotask>"u"?e=>Promise.resolve().then(e):queueMicrotask;function Fr(e){let i=e[0],o=i.length,n=Array(o);for(let a=0;a<n.length;a++)n[a]=a;n.sort((a,u)=>i[a]-i[u]);let s=[];for(let a=0;a<e.length;a++){let u=e[a],h=Array(o);for(let m=0;m<o;m++)h[m]=u[n[m]];s.push(h)}return s}function Or(e){let i=e[0][0],o=i.length;for(let n=1;n<e.length;n++){let s=e[n][0];if(s.length!=o)return!1;if(s!=i){for(let a=0;a<o;a++)if(s[a]!=i[a])return!1}}return!0}function Hr(e,i=100){const o=e.length;if(o<=1)return!0;let n=0,s=o-1;for(;n<=s&&e[n]==null;)n++;for(;s>=n&&e[s]==null;)s--;if(s<=n)return!0;const a=Be(1,tt((s-n+1)/i));for(let u=e[n],h=n+a;h<=s;h+=a){const m=e[h];if(m!=null){if(m<=u)return!1;u=m}}return!0}const bo=["January","February","March","April","May","June","July","August","September","October","November","December"],Mo=["Sunday","Monday","Tuesday","Wednesday","Thursday","Friday","Saturday"];function Ao(e){return e.slice(0,3)}const Nr=Mo.map(Ao),Wr=bo.map(Ao),Gr={MMMM:bo,MMM:Wr,WWWW:Mo,WWW:Nr};function Yl(e){return(e<10?"0":"")+e}function Ir(e){return(e<10?"00":e<100?"0":"")+e}const Yr={YYYY:e=>e.getFullYear(),YY:e=>(e.getFullYear()+"").slice(2),MMMM:(e,i)=>i.MMMM[e.getMonth()],MMM:(e,i)=>i.MMM[e.getMonth()],MM:e=>Yl(e.getMonth()+1),M:e=>e.getMonth()+1,DD:e=>Yl(e.getDate()),D:e=>e.getDate(),WWWW:(e,i)=>i.WWWW[e.getDay()],WWW:(e,i)=>i.WWW[e.getDay()],HH:e=>Yl(e.getHours()),H:e=>e.getHours(),h:e=>{let i=e.getHours();return i==0?12:i>12?i-12:i},AA:e=>e.getHours()>=12?"PM":"AM",aa:e=>e.getHours()>=12?"pm":"am",a:e=>e.getHours()>=12?"p":"a",mm:e=>Yl(e.getMinutes()),m:e=>e.getMinutes(),ss:e=>Yl(e.getSeconds()),s:e=>e.getSeconds(),fff:e=>Ir(e.getMilliseconds())};function li(e,i){i=i||Gr;let o=[],n=/\{([a-z]+)\}|[^{]+/gi,s;for(;s=n.exec(e);)o.push(s[0][0]=="{"?Yr[s[1]]:s[0]);return a=>{let u="";for(let h=0;h<o.length;h++)u+=typeof o[h]=="string"?o[h]:o[h](a,i);return u}}const Br=new Intl.DateTimeFormat().resolvedOptions().timeZone;function Ur(e,i){let o;return i=="UTC"||i=="Etc/UTC"?o=new Date(+e+e.getTimezoneOffset()*6e4):i==Br?o=e:(o=new Date(e.toLocaleString("en-US",{timeZone:i})),o.setMilliseconds(e.getMilliseconds())),o}const Eo=e=>e%1==0,cn=[1,2,2.5,5],Kr=Gl(10,-32,0,cn),Po=Gl(10,0,32,cn),jr=Po.filter(Eo),Xt=Kr.concat(Po),ni=`
`,Do="{YYYY}",Lo=ni+Do,Co="{M}/{D}",Bl=ni+Co,an=Bl+"/{YY}",Vo="{aa}",qr="{h}:{mm}",Ml=qr+Vo,Ro=ni+Ml,zo=":{ss}",re=null;function Fo(e){let i=e*1e3,o=i*60,n=o*60,s=n*24,a=s*30,u=s*365,m=(e==1?Gl(10,0,3,cn).filter(Eo):Gl(10,-3,0,cn)).concat([i,i*5,i*10,i*15,i*30,o,o*5,o*10,o*15,o*30,n,n*2,n*3,n*4,n*6,n*8,n*12,s,s*2,s*3,s*4,s*5,s*6,s*7,s*8,s*9,s*10,s*15,a,a*2,a*3,a*4,a*6,u,u*2,u*5,u*10,u*25,u*50,u*100]);const g=[[u,Do,re,re,re,re,re,re,1],[s*28,"{MMM}",Lo,re,re,re,re,re,1],[s,Co,Lo,re,re,re,re,re,1],[n,"{h}"+Vo,an,re,Bl,re,re,re,1],[o,Ml,an,re,Bl,re,re,re,1],[i,zo,an+" "+Ml,re,Bl+" "+Ml,re,Ro,re,1],[e,zo+".{fff}",an+" "+Ml,re,Bl+" "+Ml,re,Ro,re,1]];function y(d){return(w,L,D,O,N,G)=>{let k=[],H=N>=u,x=N>=a&&N<u,q=d(D),P=ae(q*e,3),$=ii(q.getFullYear(),H?0:q.getMonth(),x||H?1:q.getDate()),U=ae($*e,3);if(x||H){let Q=x?N/a:0,B=H?N/u:0,T=P==U?P:ae(ii($.getFullYear()+B,$.getMonth()+Q,1)*e,3),j=new Date(Ee(T/e)),C=j.getFullYear(),I=j.getMonth();for(let F=0;T<=O;F++){let ee=ii(C+B*F,I+Q*F,1),z=ee-d(ae(ee*e,3));T=ae((+ee+z)*e,3),T<=O&&k.push(T)}}else{let Q=N>=s?s:N,B=tt(D)-tt(P),T=U+B+fn(P-U,Q);k.push(T);let j=d(T),C=j.getHours()+j.getMinutes()/o+j.getSeconds()/n,I=N/n,F=w.axes[L]._space,ee=G/F;for(;T=ae(T+N,e==1?0:3),!(T>O);)if(I>1){let z=tt(ae(C+I,6))%24,te=d(T).getHours()-z;te>1&&(te=-1),T-=te*n,C=(C+I)%24;let fe=k[k.length-1];ae((T-fe)/N,3)*ee>=.7&&k.push(T)}else k.push(T)}return k}}return[m,g,y]}const[$r,Jr,Zr]=Fo(1),[Qr,Xr,ef]=Fo(.001);Gl(2,-53,53,[1]);function Oo(e,i){return e.map(o=>o.map((n,s)=>s==0||s==8||n==null?n:i(s==1||o[8]==0?n:o[1]+n)))}function Ho(e,i){return(o,n,s,a,u)=>{let h=i.find(D=>u>=D[0])||i[i.length-1],m,g,y,d,w,L;return n.map(D=>{let O=e(D),N=O.getFullYear(),G=O.getMonth(),k=O.getDate(),H=O.getHours(),x=O.getMinutes(),q=O.getSeconds(),P=N!=m&&h[2]||G!=g&&h[3]||k!=y&&h[4]||H!=d&&h[5]||x!=w&&h[6]||q!=L&&h[7]||h[1];return m=N,g=G,y=k,d=H,w=x,L=q,P(O)})}}function tf(e,i){let o=li(i);return(n,s,a,u,h)=>s.map(m=>o(e(m)))}function ii(e,i,o){return new Date(e,i,o)}function No(e,i){return i(e)}const lf="{YYYY}-{MM}-{DD} {h}:{mm}{aa}";function Wo(e,i){return(o,n,s,a)=>a==null?Bn:i(e(n))}function nf(e,i){let o=e.series[i];return o.width?o.stroke(e,i):o.points.width?o.points.stroke(e,i):null}function of(e,i){return e.series[i].fill(e,i)}const sf={show:!0,live:!0,isolate:!1,mount:Tr,markers:{show:!0,width:2,stroke:nf,fill:of,dash:"solid"},idx:null,idxs:null,values:[]};function rf(e,i){let o=e.cursor.points,n=ft(),s=o.size(e,i);de(n,Hl,s),de(n,Nl,s);let a=s/-2;de(n,"marginLeft",a),de(n,"marginTop",a);let u=o.width(e,i,s);return u&&de(n,"borderWidth",u),n}function ff(e,i){let o=e.series[i].points;return o._fill||o._stroke}function uf(e,i){let o=e.series[i].points;return o._stroke||o._fill}function cf(e,i){return e.series[i].points.size}const oi=[0,0];function af(e,i,o){return oi[0]=i,oi[1]=o,oi}function pn(e,i,o,n=!0){return s=>{s.button==0&&(!n||s.target==i)&&o(s)}}function si(e,i,o,n=!0){return s=>{(!n||s.target==i)&&o(s)}}const pf={show:!0,x:!0,y:!0,lock:!1,move:af,points:{one:!1,show:rf,size:cf,width:0,stroke:uf,fill:ff},bind:{mousedown:pn,mouseup:pn,click:pn,dblclick:pn,mousemove:si,mouseleave:si,mouseenter:si},drag:{setScale:!0,x:!0,y:!1,dist:0,uni:null,click:(e,i)=>{i.stopPropagation(),i.stopImmediatePropagation()},_x:!1,_y:!1},focus:{dist:(e,i,o,n,s)=>n-s,prox:-1,bias:0},hover:{skip:[void 0],prox:null,bias:0},left:-10,top:-10,idx:null,dataIdx:null,idxs:null,event:null},Go={show:!0,stroke:"rgba(0,0,0,0.07)",width:2},ri=Te({},Go,{filter:wo}),Io=Te({},ri,{size:10}),Yo=Te({},Go,{show:!1}),fi='12px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, "Noto Sans", sans-serif, "Apple Color Emoji", "Segoe UI Emoji", "Segoe UI Symbol", "Noto Color Emoji"',Bo="bold "+fi,Uo=1.5,Ko={show:!0,scale:"x",stroke:Gn,space:50,gap:5,alignTo:1,size:50,labelGap:0,labelSize:30,labelFont:Bo,side:2,grid:ri,ticks:Io,border:Yo,font:fi,lineGap:Uo,rotate:0},hf="Value",mf="Time",jo={show:!0,scale:"x",auto:!1,sorted:1,min:ce,max:-ce,idxs:[]};function gf(e,i,o,n,s){return i.map(a=>a==null?"":Qn(a))}function df(e,i,o,n,s,a,u){let h=[],m=Ot.get(s)||0;o=u?o:ae(fn(o,s),m);for(let g=o;g<=n;g=ae(g+s,m))h.push(Object.is(g,-0)?0:g);return h}function ui(e,i,o,n,s,a,u){const h=[],m=e.scales[e.axes[i].scale].log,g=m==10?Pt:po,y=tt(g(o));s=xl(m,y),m==10&&(s=Xt[dt(s,Xt)]);let d=o,w=s*m;m==10&&(w=Xt[dt(w,Xt)]);do h.push(d),d=d+s,m==10&&!Ot.has(d)&&(d=ae(d,Ot.get(s))),d>=w&&(s=d,w=s*m,m==10&&(w=Xt[dt(w,Xt)]));while(d<=n);return h}function wf(e,i,o,n,s,a,u){let m=e.scales[e.axes[i].scale].asinh,g=n>m?ui(e,i,Be(m,o),n,s):[m],y=n>=0&&o<=0?[0]:[];return(o<-m?ui(e,i,Be(m,-n),-o,s):[m]).reverse().map(w=>-w).concat(y,g)}const qo=/./,Sf=/[12357]/,_f=/[125]/,$o=/1/,ci=(e,i,o,n)=>e.map((s,a)=>i==4&&s==0||a%n==0&&o.test(s.toExponential()[s<0?1:0])?s:null);function yf(e,i,o,n,s){let a=e.axes[o],u=a.scale,h=e.scales[u],m=e.valToPos,g=a._space,y=m(10,u),d=m(9,u)-y>=g?qo:m(7,u)-y>=g?Sf:m(5,u)-y>=g?_f:$o;if(d==$o){let w=Ae(m(1,u)-y);if(w<g)return ci(i.slice().reverse(),h.distr,d,ut(g/w)).reverse()}return ci(i,h.distr,d,1)}function vf(e,i,o,n,s){let a=e.axes[o],u=a.scale,h=a._space,m=e.valToPos,g=Ae(m(1,u)-m(2,u));return g<h?ci(i.slice().reverse(),3,qo,ut(h/g)).reverse():i}function kf(e,i,o,n){return n==null?Bn:i==null?"":Qn(i)}const Jo={show:!0,scale:"y",stroke:Gn,space:30,gap:5,alignTo:1,size:50,labelGap:0,labelSize:30,labelFont:Bo,side:3,grid:ri,ticks:Io,border:Yo,font:fi,lineGap:Uo,rotate:0};function xf(e,i){let o=3+(e||1)*2;return ae(o*i,3)}function Tf(e,i){let{scale:o,idxs:n}=e.series[0],s=e._data[0],a=e.valToPos(s[n[0]],o,!0),u=e.valToPos(s[n[1]],o,!0),h=Ae(u-a),m=e.series[i],g=h/(m.points.space*oe);return n[1]-n[0]<=g}const Zo={scale:null,auto:!0,sorted:0,min:ce,max:-ce},Qo=(e,i,o,n,s)=>s,Xo={show:!0,auto:!0,sorted:0,gaps:Qo,alpha:1,facets:[Te({},Zo,{scale:"x"}),Te({},Zo,{scale:"y"})]},es={scale:"y",auto:!0,sorted:0,show:!0,spanGaps:!1,gaps:Qo,alpha:1,points:{show:Tf,filter:null},values:null,min:ce,max:-ce,idxs:[],path:null,clip:null};function bf(e,i,o,n,s){return o/10}const ts={time:!0,auto:!0,distr:1,log:10,asinh:1,min:null,max:null,dir:1,ori:0},Mf=Te({},ts,{time:!1,ori:1}),ls={};function ns(e,i){let o=ls[e];return o||(o={key:e,plots:[],sub(n){o.plots.push(n)},unsub(n){o.plots=o.plots.filter(s=>s!=n)},pub(n,s,a,u,h,m,g){for(let y=0;y<o.plots.length;y++)o.plots[y]!=s&&o.plots[y].pub(n,s,a,u,h,m,g)}},e!=null&&(ls[e]=o)),o}const Al=1,ai=2;function el(e,i,o){const n=e.mode,s=e.series[i],a=n==2?e._data[i]:e._data,u=e.scales,h=e.bbox;let m=a[0],g=n==2?a[1]:a[i],y=n==2?u[s.facets[0].scale]:u[e.series[0].scale],d=n==2?u[s.facets[1].scale]:u[s.scale],w=h.left,L=h.top,D=h.width,O=h.height,N=e.valToPosH,G=e.valToPosV;return y.ori==0?o(s,m,g,y,d,N,G,w,L,D,O,mn,El,dn,ss,fs):o(s,m,g,y,d,G,N,L,w,O,D,gn,Pl,mi,rs,us)}function pi(e,i){let o=0,n=0,s=ne(e.bands,ti);for(let a=0;a<s.length;a++){let u=s[a];u.series[0]==i?o=u.dir:u.series[1]==i&&(u.dir==1?n|=1:n|=2)}return[o,n==1?-1:n==2?1:n==3?2:0]}function Af(e,i,o,n,s){let a=e.mode,u=e.series[i],h=a==2?u.facets[1].scale:u.scale,m=e.scales[h];return s==-1?m.min:s==1?m.max:m.distr==3?m.dir==1?m.min:m.max:0}function Dt(e,i,o,n,s,a){return el(e,i,(u,h,m,g,y,d,w,L,D,O,N)=>{let G=u.pxRound;const k=g.dir*(g.ori==0?1:-1),H=g.ori==0?El:Pl;let x,q;k==1?(x=o,q=n):(x=n,q=o);let P=G(d(h[x],g,O,L)),$=G(w(m[x],y,N,D)),U=G(d(h[q],g,O,L)),Q=G(w(a==1?y.max:y.min,y,N,D)),B=new Path2D(s);return H(B,U,Q),H(B,P,Q),H(B,P,$),B})}function hn(e,i,o,n,s,a){let u=null;if(e.length>0){u=new Path2D;const h=i==0?dn:mi;let m=o;for(let d=0;d<e.length;d++){let w=e[d];if(w[1]>w[0]){let L=w[0]-m;L>0&&h(u,m,n,L,n+a),m=w[1]}}let g=o+s-m,y=10;g>0&&h(u,m,n-y/2,g,n+a+y)}return u}function Ef(e,i,o){let n=e[e.length-1];n&&n[0]==i?n[1]=o:e.push([i,o])}function hi(e,i,o,n,s,a,u){let h=[],m=e.length;for(let g=s==1?o:n;g>=o&&g<=n;g+=s)if(i[g]===null){let d=g,w=g;if(s==1)for(;++g<=n&&i[g]===null;)w=g;else for(;--g>=o&&i[g]===null;)w=g;let L=a(e[d]),D=w==d?L:a(e[w]),O=d-s;L=u<=0&&O>=0&&O<m?a(e[O]):L;let G=w+s;D=u>=0&&G>=0&&G<m?a(e[G]):D,D>=L&&h.push([L,D])}return h}function is(e){return e==0?go:e==1?Ee:i=>Qt(i,e)}function os(e){let i=e==0?mn:gn,o=e==0?(s,a,u,h,m,g)=>{s.arcTo(a,u,h,m,g)}:(s,a,u,h,m,g)=>{s.arcTo(u,a,m,h,g)},n=e==0?(s,a,u,h,m)=>{s.rect(a,u,h,m)}:(s,a,u,h,m)=>{s.rect(u,a,m,h)};return(s,a,u,h,m,g=0,y=0)=>{g==0&&y==0?n(s,a,u,h,m):(g=wt(g,h/2,m/2),y=wt(y,h/2,m/2),i(s,a+g,u),o(s,a+h,u,a+h,u+m,g),o(s,a+h,u+m,a,u+m,y),o(s,a,u+m,a,u,y),o(s,a,u,a+h,u,g),s.closePath())}}const mn=(e,i,o)=>{e.moveTo(i,o)},gn=(e,i,o)=>{e.moveTo(o,i)},El=(e,i,o)=>{e.lineTo(i,o)},Pl=(e,i,o)=>{e.lineTo(o,i)},dn=os(0),mi=os(1),ss=(e,i,o,n,s,a)=>{e.arc(i,o,n,s,a)},rs=(e,i,o,n,s,a)=>{e.arc(o,i,n,s,a)},fs=(e,i,o,n,s,a,u)=>{e.bezierCurveTo(i,o,n,s,a,u)},us=(e,i,o,n,s,a,u)=>{e.bezierCurveTo(o,i,s,n,u,a)};function cs(e){return(i,o,n,s,a)=>el(i,o,(u,h,m,g,y,d,w,L,D,O,N)=>{let{pxRound:G,points:k}=u,H,x;g.ori==0?(H=mn,x=ss):(H=gn,x=rs);const q=ae(k.width*oe,3);let P=(k.size-k.width)/2*oe,$=ae(P*2,3),U=new Path2D,Q=new Path2D,{left:B,top:T,width:j,height:C}=i.bbox;dn(Q,B-$,T-$,j+$*2,C+$*2);const I=F=>{if(m[F]!=null){let ee=G(d(h[F],g,O,L)),z=G(w(m[F],y,N,D));H(U,ee+P,z),x(U,ee,z,P,0,rn*2)}};if(a)a.forEach(I);else for(let F=n;F<=s;F++)I(F);return{stroke:q>0?U:null,fill:U,clip:Q,flags:Al|ai}})}function as(e){return(i,o,n,s,a,u)=>{n!=s&&(a!=n&&u!=n&&e(i,o,n),a!=s&&u!=s&&e(i,o,s),e(i,o,u))}}const Pf=as(El),Df=as(Pl);function ps(e){const i=ne(e?.alignGaps,0);return(o,n,s,a)=>el(o,n,(u,h,m,g,y,d,w,L,D,O,N)=>{[s,a]=nn(m,s,a);let G=u.pxRound,k=C=>G(d(C,g,O,L)),H=C=>G(w(C,y,N,D)),x,q;g.ori==0?(x=El,q=Pf):(x=Pl,q=Df);const P=g.dir*(g.ori==0?1:-1),$={stroke:new Path2D,fill:null,clip:null,band:null,gaps:null,flags:Al},U=$.stroke;let Q=!1;if(a-s>=O*4){let C=V=>o.posToVal(V,g.key,!0),I=null,F=null,ee,z,Ue,we=k(h[P==1?s:a]),te=k(h[s]),fe=k(h[a]),J=C(P==1?te+1:fe-1);for(let V=P==1?s:a;V>=s&&V<=a;V+=P){let be=h[V],Se=(P==1?be<J:be>J)?we:k(be),se=m[V];Se==we?se!=null?(z=se,I==null?(x(U,Se,H(z)),ee=I=F=z):z<I?I=z:z>F&&(F=z)):se===null&&(Q=!0):(I!=null&&q(U,we,H(I),H(F),H(ee),H(z)),se!=null?(z=se,x(U,Se,H(z)),I=F=ee=z):(I=F=null,se===null&&(Q=!0)),we=Se,J=C(we+P))}I!=null&&I!=F&&Ue!=we&&q(U,we,H(I),H(F),H(ee),H(z))}else for(let C=P==1?s:a;C>=s&&C<=a;C+=P){let I=m[C];I===null?Q=!0:I!=null&&x(U,k(h[C]),H(I))}let[T,j]=pi(o,n);if(u.fill!=null||T!=0){let C=$.fill=new Path2D(U),I=u.fillTo(o,n,u.min,u.max,T),F=H(I),ee=k(h[s]),z=k(h[a]);P==-1&&([z,ee]=[ee,z]),x(C,z,F),x(C,ee,F)}if(!u.spanGaps){let C=[];Q&&C.push(...hi(h,m,s,a,P,k,i)),$.gaps=C=u.gaps(o,n,s,a,C),$.clip=hn(C,g.ori,L,D,O,N)}return j!=0&&($.band=j==2?[Dt(o,n,s,a,U,-1),Dt(o,n,s,a,U,1)]:Dt(o,n,s,a,U,j)),$})}function Lf(e){const i=ne(e.align,1),o=ne(e.ascDesc,!1),n=ne(e.alignGaps,0),s=ne(e.extend,!1);return(a,u,h,m)=>el(a,u,(g,y,d,w,L,D,O,N,G,k,H)=>{[h,m]=nn(d,h,m);let x=g.pxRound,{left:q,width:P}=a.bbox,$=te=>x(D(te,w,k,N)),U=te=>x(O(te,L,H,G)),Q=w.ori==0?El:Pl;const B={stroke:new Path2D,fill:null,clip:null,band:null,gaps:null,flags:Al},T=B.stroke,j=w.dir*(w.ori==0?1:-1);let C=U(d[j==1?h:m]),I=$(y[j==1?h:m]),F=I,ee=I;s&&i==-1&&(ee=q,Q(T,ee,C)),Q(T,I,C);for(let te=j==1?h:m;te>=h&&te<=m;te+=j){let fe=d[te];if(fe==null)continue;let J=$(y[te]),V=U(fe);i==1?Q(T,J,C):Q(T,F,V),Q(T,J,V),C=V,F=J}let z=F;s&&i==1&&(z=q+P,Q(T,z,C));let[Ue,we]=pi(a,u);if(g.fill!=null||Ue!=0){let te=B.fill=new Path2D(T),fe=g.fillTo(a,u,g.min,g.max,Ue),J=U(fe);Q(te,z,J),Q(te,ee,J)}if(!g.spanGaps){let te=[];te.push(...hi(y,d,h,m,j,$,n));let fe=g.width*oe/2,J=o||i==1?fe:-fe,V=o||i==-1?-fe:fe;te.forEach(be=>{be[0]+=J,be[1]+=V}),B.gaps=te=g.gaps(a,u,h,m,te),B.clip=hn(te,w.ori,N,G,k,H)}return we!=0&&(B.band=we==2?[Dt(a,u,h,m,T,-1),Dt(a,u,h,m,T,1)]:Dt(a,u,h,m,T,we)),B})}function hs(e,i,o,n,s,a,u=ce){if(e.length>1){let h=null;for(let m=0,g=1/0;m<e.length;m++)if(i[m]!==void 0){if(h!=null){let y=Ae(e[m]-e[h]);y<g&&(g=y,u=Ae(o(e[m],n,s,a)-o(e[h],n,s,a)))}h=m}}return u}function Cf(e){e=e||Il;const i=ne(e.size,[.6,ce,1]),o=e.align||0,n=e.gap||0;let s=e.radius;s=s==null?[0,0]:typeof s=="number"?[s,0]:s;const a=X(s),u=1-i[0],h=ne(i[1],ce),m=ne(i[2],1),g=ne(e.disp,Il),y=ne(e.each,L=>{}),{fill:d,stroke:w}=g;return(L,D,O,N)=>el(L,D,(G,k,H,x,q,P,$,U,Q,B,T)=>{let j=G.pxRound,C=o,I=n*oe,F=h*oe,ee=m*oe,z,Ue;x.ori==0?[z,Ue]=a(L,D):[Ue,z]=a(L,D);const we=x.dir*(x.ori==0?1:-1);let te=x.ori==0?dn:mi,fe=x.ori==0?y:(A,pe,Me,il,Gt,_t,It)=>{y(A,pe,Me,Gt,il,It,_t)},J=ne(L.bands,ti).find(A=>A.series[0]==D),V=J!=null?J.dir:0,be=G.fillTo(L,D,G.min,G.max,V),Ne=j($(be,q,T,Q)),Se,se,ct,qe=B,ye=j(G.width*oe),St=!1,Mt=null,lt=null,Lt=null,tl=null;d!=null&&(ye==0||w!=null)&&(St=!0,Mt=d.values(L,D,O,N),lt=new Map,new Set(Mt).forEach(A=>{A!=null&&lt.set(A,new Path2D)}),ye>0&&(Lt=w.values(L,D,O,N),tl=new Map,new Set(Lt).forEach(A=>{A!=null&&tl.set(A,new Path2D)})));let{x0:ll,size:Dl}=g;if(ll!=null&&Dl!=null){C=1,k=ll.values(L,D,O,N),ll.unit==2&&(k=k.map(Me=>L.posToVal(U+Me*B,x.key,!0)));let A=Dl.values(L,D,O,N);Dl.unit==2?se=A[0]*B:se=P(A[0],x,B,U)-P(0,x,B,U),qe=hs(k,H,P,x,B,U,qe),ct=qe-se+I}else qe=hs(k,H,P,x,B,U,qe),ct=qe*u+I,se=qe-ct;ct<1&&(ct=0),ye>=se/2&&(ye=0),ct<5&&(j=go);let Ul=ct>0,Nt=qe-ct-(Ul?ye:0);se=j(ei(Nt,ee,F)),Se=(C==0?se/2:C==we?0:se)-C*we*((C==0?I/2:0)+(Ul?ye/2:0));const We={stroke:null,fill:null,clip:null,band:null,gaps:null,flags:0},nl=St?null:new Path2D;let At=null;if(J!=null)At=L.data[J.series[1]];else{let{y0:A,y1:pe}=g;A!=null&&pe!=null&&(H=pe.values(L,D,O,N),At=A.values(L,D,O,N))}let Wt=z*se,K=Ue*se;for(let A=we==1?O:N;A>=O&&A<=N;A+=we){let pe=H[A];if(pe==null)continue;if(At!=null){let Ke=At[A]??0;if(pe-Ke==0)continue;Ne=$(Ke,q,T,Q)}let Me=x.distr!=2||g!=null?k[A]:A,il=P(Me,x,B,U),Gt=$(ne(pe,be),q,T,Q),_t=j(il-Se),It=j(Be(Gt,Ne)),$e=j(wt(Gt,Ne)),nt=It-$e;if(pe!=null){let Ke=pe<0?K:Wt,at=pe<0?Wt:K;St?(ye>0&&Lt[A]!=null&&te(tl.get(Lt[A]),_t,$e+tt(ye/2),se,Be(0,nt-ye),Ke,at),Mt[A]!=null&&te(lt.get(Mt[A]),_t,$e+tt(ye/2),se,Be(0,nt-ye),Ke,at)):te(nl,_t,$e+tt(ye/2),se,Be(0,nt-ye),Ke,at),fe(L,D,A,_t-ye/2,$e,se+ye,nt)}}return ye>0?We.stroke=St?tl:nl:St||(We._fill=G.width==0?G._fill:G._stroke??G._fill,We.width=0),We.fill=St?lt:nl,We})}function Vf(e,i){const o=ne(i?.alignGaps,0);return(n,s,a,u)=>el(n,s,(h,m,g,y,d,w,L,D,O,N,G)=>{[a,u]=nn(g,a,u);let k=h.pxRound,H=z=>k(w(z,y,N,D)),x=z=>k(L(z,d,G,O)),q,P,$;y.ori==0?(q=mn,$=El,P=fs):(q=gn,$=Pl,P=us);const U=y.dir*(y.ori==0?1:-1);let Q=H(m[U==1?a:u]),B=Q,T=[],j=[];for(let z=U==1?a:u;z>=a&&z<=u;z+=U)if(g[z]!=null){let we=m[z],te=H(we);T.push(B=te),j.push(x(g[z]))}const C={stroke:e(T,j,q,$,P,k),fill:null,clip:null,band:null,gaps:null,flags:Al},I=C.stroke;let[F,ee]=pi(n,s);if(h.fill!=null||F!=0){let z=C.fill=new Path2D(I),Ue=h.fillTo(n,s,h.min,h.max,F),we=x(Ue);$(z,B,we),$(z,Q,we)}if(!h.spanGaps){let z=[];z.push(...hi(m,g,a,u,U,H,o)),C.gaps=z=h.gaps(n,s,a,u,z),C.clip=hn(z,y.ori,D,O,N,G)}return ee!=0&&(C.band=ee==2?[Dt(n,s,a,u,I,-1),Dt(n,s,a,u,I,1)]:Dt(n,s,a,u,I,ee)),C})}function Rf(e){return Vf(zf,e)}function zf(e,i,o,n,s,a){const u=e.length;if(u<2)return null;const h=new Path2D;if(o(h,e[0],i[0]),u==2)n(h,e[1],i[1]);else{let m=Array(u),g=Array(u-1),y=Array(u-1),d=Array(u-1);for(let w=0;w<u-1;w++)y[w]=i[w+1]-i[w],d[w]=e[w+1]-e[w],g[w]=y[w]/d[w];m[0]=g[0];for(let w=1;w<u-1;w++)g[w]===0||g[w-1]===0||g[w-1]>0!=g[w]>0?m[w]=0:(m[w]=3*(d[w-1]+d[w])/((2*d[w]+d[w-1])/g[w-1]+(d[w]+2*d[w-1])/g[w]),isFinite(m[w])||(m[w]=0));m[u-1]=g[u-2];for(let w=0;w<u-1;w++)s(h,e[w]+d[w]/3,i[w]+m[w]*d[w]/3,e[w+1]-d[w]/3,i[w+1]-m[w+1]*d[w]/3,e[w+1],i[w+1])}return h}const gi=new Set;function ms(){for(let e of gi)e.syncRect(!0)}vl&&(Jt(mr,kl,ms),Jt(gr,kl,ms,!0),Jt(tn,kl,()=>{He.pxRatio=oe}));const Ff=ps(),Of=cs();function gs(e,i,o,n){return(n?[e[0],e[1]].concat(e.slice(2)):[e[0]].concat(e.slice(1))).map((a,u)=>di(a,u,i,o))}function Hf(e,i){return e.map((o,n)=>n==0?{}:Te({},i,o))}function di(e,i,o,n){return Te({},i==0?o:n,e)}function ds(e,i,o){return i==null?Tl:[i,o]}const Nf=ds;function Wf(e,i,o){return i==null?Tl:sn(i,o,Zn,!0)}function ws(e,i,o,n){return i==null?Tl:on(i,o,e.scales[n].log,!1)}const Gf=ws;function Ss(e,i,o,n){return i==null?Tl:Jn(i,o,e.scales[n].log,!1)}const If=Ss;function Yf(e,i,o,n,s){let a=Be(ho(e),ho(i)),u=i-e,h=dt(s/n*u,o);do{let m=o[h],g=n*m/u;if(g>=s&&a+(m<5?Ot.get(m):0)<=17)return[m,g]}while(++h<o.length);return[0,0]}function _s(e){let i,o;return e=e.replace(/(\d+)px/,(n,s)=>(i=Ee((o=+s)*oe))+"px"),[e,i,o]}function Bf(e){e.show&&[e.font,e.labelFont].forEach(i=>{let o=ae(i[2]*oe,1);i[0]=i[0].replace(/[0-9.]+px/,o+"px"),i[1]=o})}function He(e,i,o){const n={mode:ne(e.mode,1)},s=n.mode;function a(t,l,r,f){let c=l.valToPct(t);return f+r*(l.dir==-1?1-c:c)}function u(t,l,r,f){let c=l.valToPct(t);return f+r*(l.dir==-1?c:1-c)}function h(t,l,r,f){return l.ori==0?a(t,l,r,f):u(t,l,r,f)}n.valToPosH=a,n.valToPosV=u;let m=!1;n.status=0;const g=n.root=ft(Js);if(e.id!=null&&(g.id=e.id),Xe(g,e.class),e.title){let t=ft(Xs,g);t.textContent=e.title}const y=gt("canvas"),d=n.ctx=y.getContext("2d"),w=ft(er,g);Jt("click",w,t=>{t.target===D&&(he!=gl||_e!=dl)&&Fe.click(n,t)},!0);const L=n.under=ft(tr,w);w.appendChild(y);const D=n.over=ft(lr,w);e=bl(e);const O=+ne(e.pxAlign,1),N=is(O);(e.plugins||[]).forEach(t=>{t.opts&&(e=t.opts(n,e)||e)});const G=e.ms||.001,k=n.series=s==1?gs(e.series||[],jo,es,!1):Hf(e.series||[null],Xo),H=n.axes=gs(e.axes||[],Ko,Jo,!0),x=n.scales={},q=n.bands=e.bands||[];q.forEach(t=>{t.fill=X(t.fill||null),t.dir=ne(t.dir,-1)});const P=s==2?k[1].facets[0].scale:k[0].scale,$={axes:zs,series:Ds},U=(e.drawOrder||["axes","series"]).map(t=>$[t]);function Q(t){const l=t.distr==3?r=>Pt(r>0?r:t.clamp(n,r,t.min,t.max,t.key)):t.distr==4?r=>Xn(r,t.asinh):t.distr==100?r=>t.fwd(r):r=>r;return r=>{let f=l(r),{_min:c,_max:p}=t,S=p-c;return(f-c)/S}}function B(t){let l=x[t];if(l==null){let r=(e.scales||Il)[t]||Il;if(r.from!=null){B(r.from);let f=Te({},x[r.from],r,{key:t});f.valToPct=Q(f),x[t]=f}else{l=x[t]=Te({},t==P?ts:Mf,r),l.key=t;let f=l.time,c=l.range,p=Ht(c);if((t!=P||s==2&&!f)&&(p&&(c[0]==null||c[1]==null)&&(c={min:c[0]==null?uo:{mode:1,hard:c[0],soft:c[0]},max:c[1]==null?uo:{mode:1,hard:c[1],soft:c[1]}},p=!1),!p&&un(c))){let S=c;c=(_,v,b)=>v==null?Tl:sn(v,b,S)}l.range=X(c||(f?Nf:t==P?l.distr==3?Gf:l.distr==4?If:ds:l.distr==3?ws:l.distr==4?Ss:Wf)),l.auto=X(p?!1:l.auto),l.clamp=X(l.clamp||bf),l._min=l._max=null,l.valToPct=Q(l)}}}B("x"),B("y"),s==1&&k.forEach(t=>{B(t.scale)}),H.forEach(t=>{B(t.scale)});for(let t in e.scales)B(t);const T=x[P],j=T.distr;let C,I;T.ori==0?(Xe(g,Zs),C=a,I=u):(Xe(g,Qs),C=u,I=a);const F={};for(let t in x){let l=x[t];(l.min!=null||l.max!=null)&&(F[t]={min:l.min,max:l.max},l.min=l.max=null)}const ee=e.tzDate||(t=>new Date(Ee(t/G))),z=e.fmtDate||li,Ue=G==1?Zr(ee):ef(ee),we=Ho(ee,Oo(G==1?Jr:Xr,z)),te=Wo(ee,No(lf,z)),fe=[],J=n.legend=Te({},sf,e.legend),V=n.cursor=Te({},pf,{drag:{y:s==2}},e.cursor),be=J.show,Ne=V.show,Se=J.markers;J.idxs=fe,Se.width=X(Se.width),Se.dash=X(Se.dash),Se.stroke=X(Se.stroke),Se.fill=X(Se.fill);let se,ct,qe,ye=[],St=[],Mt,lt=!1,Lt={};if(J.live){const t=k[1]?k[1].values:null;lt=t!=null,Mt=lt?t(n,1,0):{_:0};for(let l in Mt)Lt[l]=Bn}if(be)if(se=gt("table",fr,g),qe=gt("tbody",null,se),J.mount(n,se),lt){ct=gt("thead",null,se,qe);let t=gt("tr",null,ct);gt("th",null,t);for(var tl in Mt)gt("th",ji,t).textContent=tl}else Xe(se,cr),J.live&&Xe(se,ur);const ll={show:!0},Dl={show:!1};function Ul(t,l){if(l==0&&(lt||!J.live||s==2))return Tl;let r=[],f=gt("tr",ar,qe,qe.childNodes[l]);Xe(f,t.class),t.show||Xe(f,$t);let c=gt("th",null,f);if(Se.show){let _=ft(pr,c);if(l>0){let v=Se.width(n,l);v&&(_.style.border=v+"px "+Se.dash(n,l)+" "+Se.stroke(n,l)),_.style.background=Se.fill(n,l)}}let p=ft(ji,c);t.label instanceof HTMLElement?p.appendChild(t.label):p.textContent=t.label,l>0&&(Se.show||(p.style.color=t.width>0?Se.stroke(n,l):Se.fill(n,l)),We("click",c,_=>{if(V._lock)return;Bt(_);let v=k.indexOf(t);if((_.ctrlKey||_.metaKey)!=J.isolate){let b=k.some((M,E)=>E>0&&E!=v&&M.show);k.forEach((M,E)=>{E>0&&vt(E,b?E==v?ll:Dl:ll,!0,xe.setSeries)})}else vt(v,{show:!t.show},!0,xe.setSeries)},!1),sl&&We(Zi,c,_=>{V._lock||(Bt(_),vt(k.indexOf(t),Sl,!0,xe.setSeries))},!1));for(var S in Mt){let _=gt("td",hr,f);_.textContent="--",r.push(_)}return[f,r]}const Nt=new Map;function We(t,l,r,f=!0){const c=Nt.get(l)||{},p=V.bind[t](n,l,r,f);p&&(Jt(t,l,c[t]=p),Nt.set(l,c))}function nl(t,l,r){const f=Nt.get(l)||{};for(let c in f)(t==null||c==t)&&($n(c,l,f[c]),delete f[c]);t==null&&Nt.delete(l)}let At=0,Wt=0,K=0,A=0,pe=0,Me=0,il=pe,Gt=Me,_t=K,It=A,$e=0,nt=0,Ke=0,at=0;n.bbox={};let wn=!1,Kl=!1,ol=!1,Yt=!1,jl=!1,it=!1;function Sn(t,l,r){(r||t!=n.width||l!=n.height)&&wi(t,l),al(!1),ol=!0,Kl=!0,pl()}function wi(t,l){n.width=At=K=t,n.height=Wt=A=l,pe=Me=0,xs(),Ts();let r=n.bbox;$e=r.left=Qt(pe*oe,.5),nt=r.top=Qt(Me*oe,.5),Ke=r.width=Qt(K*oe,.5),at=r.height=Qt(A*oe,.5)}const ys=3;function vs(){let t=!1,l=0;for(;!t;){l++;let r=Vs(l),f=Rs(l);t=l==ys||r&&f,t||(wi(n.width,n.height),Kl=!0)}}function ks({width:t,height:l}){Sn(t,l)}n.setSize=ks;function xs(){let t=!1,l=!1,r=!1,f=!1;H.forEach((c,p)=>{if(c.show&&c._show){let{side:S,_size:_}=c,v=S%2,b=c.label!=null?c.labelSize:0,M=_+b;M>0&&(v?(K-=M,S==3?(pe+=M,f=!0):r=!0):(A-=M,S==0?(Me+=M,t=!0):l=!0))}}),Ut[0]=t,Ut[1]=r,Ut[2]=l,Ut[3]=f,K-=Ct[1]+Ct[3],pe+=Ct[3],A-=Ct[2]+Ct[0],Me+=Ct[0]}function Ts(){let t=pe+K,l=Me+A,r=pe,f=Me;function c(p,S){switch(p){case 1:return t+=S,t-S;case 2:return l+=S,l-S;case 3:return r-=S,r+S;case 0:return f-=S,f+S}}H.forEach((p,S)=>{if(p.show&&p._show){let _=p.side;p._pos=c(_,p._size),p.label!=null&&(p._lpos=c(_,p.labelSize))}})}if(V.dataIdx==null){let t=V.hover,l=t.skip=new Set(t.skip??[]);l.add(void 0);let r=t.prox=X(t.prox),f=t.bias??=0;V.dataIdx=(c,p,S,_)=>{if(p==0)return S;let v=S,b=r(c,p,S,_)??ce,M=b>=0&&b<ce,E=T.ori==0?K:A,Y=V.left,ie=i[0],le=i[p];if(l.has(le[S])){v=null;let Z=null,W=null,R;if(f==0||f==-1)for(R=S;Z==null&&R-- >0;)l.has(le[R])||(Z=R);if(f==0||f==1)for(R=S;W==null&&R++<le.length;)l.has(le[R])||(W=R);if(Z!=null||W!=null)if(M){let ge=Z==null?-1/0:C(ie[Z],T,E,0),ve=W==null?1/0:C(ie[W],T,E,0),Re=Y-ge,ue=ve-Y;Re<=ue?Re<=b&&(v=Z):ue<=b&&(v=W)}else v=W==null?Z:Z==null?W:S-Z<=W-S?Z:W}else M&&Ae(Y-C(ie[S],T,E,0))>b&&(v=null);return v}}const Bt=t=>{V.event=t};V.idxs=fe,V._lock=!1;let Oe=V.points;Oe.show=X(Oe.show),Oe.size=X(Oe.size),Oe.stroke=X(Oe.stroke),Oe.width=X(Oe.width),Oe.fill=X(Oe.fill);const yt=n.focus=Te({},e.focus||{alpha:.3},V.focus),sl=yt.prox>=0,rl=sl&&Oe.one;let ot=[],fl=[],ul=[];function Si(t,l){let r=Oe.show(n,l);if(r instanceof HTMLElement)return Xe(r,rr),Xe(r,t.class),bt(r,-10,-10,K,A),D.insertBefore(r,ot[l]),r}function _i(t,l){if(s==1||l>0){let r=s==1&&x[t.scale].time,f=t.value;t.value=r?xo(f)?Wo(ee,No(f,z)):f||te:f||kf,t.label=t.label||(r?mf:hf)}if(rl||l>0){t.width=t.width==null?1:t.width,t.paths=t.paths||Ff||br,t.fillTo=X(t.fillTo||Af),t.pxAlign=+ne(t.pxAlign,O),t.pxRound=is(t.pxAlign),t.stroke=X(t.stroke||null),t.fill=X(t.fill||null),t._stroke=t._fill=t._paths=t._focus=null;let r=xf(Be(1,t.width),1),f=t.points=Te({},{size:r,width:Be(1,r*.2),stroke:t.stroke,space:r*2,paths:Of,_stroke:null,_fill:null},t.points);f.show=X(f.show),f.filter=X(f.filter),f.fill=X(f.fill),f.stroke=X(f.stroke),f.paths=X(f.paths),f.pxAlign=t.pxAlign}if(be){let r=Ul(t,l);ye.splice(l,0,r[0]),St.splice(l,0,r[1]),J.values.push(null)}if(Ne){fe.splice(l,0,null);let r=null;rl?l==0&&(r=Si(t,l)):l>0&&(r=Si(t,l)),ot.splice(l,0,r),fl.splice(l,0,0),ul.splice(l,0,0)}Ve("addSeries",l)}function bs(t,l){l=l??k.length,t=s==1?di(t,l,jo,es):di(t,l,{},Xo),k.splice(l,0,t),_i(k[l],l)}n.addSeries=bs;function Ms(t){if(k.splice(t,1),be){J.values.splice(t,1),St.splice(t,1);let l=ye.splice(t,1)[0];nl(null,l.firstChild),l.remove()}Ne&&(fe.splice(t,1),ot.splice(t,1)[0].remove(),fl.splice(t,1),ul.splice(t,1)),Ve("delSeries",t)}n.delSeries=Ms;const Ut=[!1,!1,!1,!1];function As(t,l){if(t._show=t.show,t.show){let r=t.side%2,f=x[t.scale];f==null&&(t.scale=r?k[1].scale:P,f=x[t.scale]);let c=f.time;t.size=X(t.size),t.space=X(t.space),t.rotate=X(t.rotate),Ht(t.incrs)&&t.incrs.forEach(S=>{!Ot.has(S)&&Ot.set(S,vo(S))}),t.incrs=X(t.incrs||(f.distr==2?jr:c?G==1?$r:Qr:Xt)),t.splits=X(t.splits||(c&&f.distr==1?Ue:f.distr==3?ui:f.distr==4?wf:df)),t.stroke=X(t.stroke),t.grid.stroke=X(t.grid.stroke),t.ticks.stroke=X(t.ticks.stroke),t.border.stroke=X(t.border.stroke);let p=t.values;t.values=Ht(p)&&!Ht(p[0])?X(p):c?Ht(p)?Ho(ee,Oo(p,z)):xo(p)?tf(ee,p):p||we:p||gf,t.filter=X(t.filter||(f.distr>=3&&f.log==10?yf:f.distr==3&&f.log==2?vf:wo)),t.font=_s(t.font),t.labelFont=_s(t.labelFont),t._size=t.size(n,null,l,0),t._space=t._rotate=t._incrs=t._found=t._splits=t._values=null,t._size>0&&(Ut[l]=!0,t._el=ft(nr,w))}}function Ll(t,l,r,f){let[c,p,S,_]=r,v=l%2,b=0;return v==0&&(_||p)&&(b=l==0&&!c||l==2&&!S?Ee(Ko.size/3):0),v==1&&(c||S)&&(b=l==1&&!p||l==3&&!_?Ee(Jo.size/2):0),b}const yi=n.padding=(e.padding||[Ll,Ll,Ll,Ll]).map(t=>X(ne(t,Ll))),Ct=n._padding=yi.map((t,l)=>t(n,l,Ut,0));let ze,Pe=null,De=null;const ql=s==1?k[0].idxs:null;let pt=null,Cl=!1;function vi(t,l){if(i=t??[],n.data=n._data=i,s==2){ze=0;for(let r=1;r<k.length;r++)ze+=i[r][0].length}else{i.length==0&&(n.data=n._data=i=[[]]),pt=i[0],ze=pt.length;let r=i;if(j==2){r=i.slice();let f=r[0]=Array(ze);for(let c=0;c<ze;c++)f[c]=c}n._data=i=r}if(al(!0),Ve("setData"),j==2&&(ol=!0),l!==!1){let r=T;r.auto(n,Cl)?_n():Rt(P,r.min,r.max),Yt=Yt||V.left>=0,it=!0,pl()}}n.setData=vi;function _n(){Cl=!0;let t,l;s==1&&(ze>0?(Pe=ql[0]=0,De=ql[1]=ze-1,t=i[0][Pe],l=i[0][De],j==2?(t=Pe,l=De):t==l&&(j==3?[t,l]=on(t,t,T.log,!1):j==4?[t,l]=Jn(t,t,T.log,!1):T.time?l=t+Ee(86400/G):[t,l]=sn(t,l,Zn,!0))):(Pe=ql[0]=t=null,De=ql[1]=l=null)),Rt(P,t,l)}let $l,cl,yn,vn,kn,xn,Tn,bn,Mn,je;function ki(t,l,r,f,c,p){t??=$i,r??=ti,f??="butt",c??=$i,p??="round",t!=$l&&(d.strokeStyle=$l=t),c!=cl&&(d.fillStyle=cl=c),l!=yn&&(d.lineWidth=yn=l),p!=kn&&(d.lineJoin=kn=p),f!=xn&&(d.lineCap=xn=f),r!=vn&&d.setLineDash(vn=r)}function xi(t,l,r,f){l!=cl&&(d.fillStyle=cl=l),t!=Tn&&(d.font=Tn=t),r!=bn&&(d.textAlign=bn=r),f!=Mn&&(d.textBaseline=Mn=f)}function An(t,l,r,f,c=0){if(f.length>0&&t.auto(n,Cl)&&(l==null||l.min==null)){let p=ne(Pe,0),S=ne(De,f.length-1),_=r.min==null?_r(f,p,S,c,t.distr==3):[r.min,r.max];t.min=wt(t.min,r.min=_[0]),t.max=Be(t.max,r.max=_[1])}}const Ti={min:null,max:null};function Es(){for(let f in x){let c=x[f];F[f]==null&&(c.min==null||F[P]!=null&&c.auto(n,Cl))&&(F[f]=Ti)}for(let f in x){let c=x[f];F[f]==null&&c.from!=null&&F[c.from]!=null&&(F[f]=Ti)}F[P]!=null&&al(!0);let t={};for(let f in F){let c=F[f];if(c!=null){let p=t[f]=bl(x[f],Er);if(c.min!=null)Te(p,c);else if(f!=P||s==2)if(ze==0&&p.from==null){let S=p.range(n,null,null,f);p.min=S[0],p.max=S[1]}else p.min=ce,p.max=-ce}}if(ze>0){k.forEach((f,c)=>{if(s==1){let p=f.scale,S=F[p];if(S==null)return;let _=t[p];if(c==0){let v=_.range(n,_.min,_.max,p);_.min=v[0],_.max=v[1],Pe=dt(_.min,i[0]),De=dt(_.max,i[0]),De-Pe>1&&(i[0][Pe]<_.min&&Pe++,i[0][De]>_.max&&De--),f.min=pt[Pe],f.max=pt[De]}else f.show&&f.auto&&An(_,S,f,i[c],f.sorted);f.idxs[0]=Pe,f.idxs[1]=De}else if(c>0&&f.show&&f.auto){let[p,S]=f.facets,_=p.scale,v=S.scale,[b,M]=i[c],E=t[_],Y=t[v];E!=null&&An(E,F[_],p,b,p.sorted),Y!=null&&An(Y,F[v],S,M,S.sorted),f.min=S.min,f.max=S.max}});for(let f in t){let c=t[f],p=F[f];if(c.from==null&&(p==null||p.min==null)){let S=c.range(n,c.min==ce?null:c.min,c.max==-ce?null:c.max,f);c.min=S[0],c.max=S[1]}}}for(let f in t){let c=t[f];if(c.from!=null){let p=t[c.from];if(p.min==null)c.min=c.max=null;else{let S=c.range(n,p.min,p.max,f);c.min=S[0],c.max=S[1]}}}let l={},r=!1;for(let f in t){let c=t[f],p=x[f];if(p.min!=c.min||p.max!=c.max){p.min=c.min,p.max=c.max;let S=p.distr;p._min=S==3?Pt(p.min):S==4?Xn(p.min,p.asinh):S==100?p.fwd(p.min):p.min,p._max=S==3?Pt(p.max):S==4?Xn(p.max,p.asinh):S==100?p.fwd(p.max):p.max,l[f]=r=!0}}if(r){k.forEach((f,c)=>{s==2?c>0&&l.y&&(f._paths=null):l[f.scale]&&(f._paths=null)});for(let f in l)ol=!0,Ve("setScale",f);Ne&&V.left>=0&&(Yt=it=!0)}for(let f in F)F[f]=null}function Ps(t){let l=ei(Pe-1,0,ze-1),r=ei(De+1,0,ze-1);for(;t[l]==null&&l>0;)l--;for(;t[r]==null&&r<ze-1;)r++;return[l,r]}function Ds(){if(ze>0){let t=k.some(l=>l._focus)&&je!=yt.alpha;t&&(d.globalAlpha=je=yt.alpha),k.forEach((l,r)=>{if(r>0&&l.show&&(bi(r,!1),bi(r,!0),l._paths==null)){let f=je;je!=l.alpha&&(d.globalAlpha=je=l.alpha);let c=s==2?[0,i[r][0].length-1]:Ps(i[r]);l._paths=l.paths(n,r,c[0],c[1]),je!=f&&(d.globalAlpha=je=f)}}),k.forEach((l,r)=>{if(r>0&&l.show){let f=je;je!=l.alpha&&(d.globalAlpha=je=l.alpha),l._paths!=null&&Mi(r,!1);{let c=l._paths!=null?l._paths.gaps:null,p=l.points.show(n,r,Pe,De,c),S=l.points.filter(n,r,p,c);(p||S)&&(l.points._paths=l.points.paths(n,r,Pe,De,S),Mi(r,!0))}je!=f&&(d.globalAlpha=je=f),Ve("drawSeries",r)}}),t&&(d.globalAlpha=je=1)}}function bi(t,l){let r=l?k[t].points:k[t];r._stroke=r.stroke(n,t),r._fill=r.fill(n,t)}function Mi(t,l){let r=l?k[t].points:k[t],{stroke:f,fill:c,clip:p,flags:S,_stroke:_=r._stroke,_fill:v=r._fill,_width:b=r.width}=r._paths;b=ae(b*oe,3);let M=null,E=b%2/2;l&&v==null&&(v=b>0?"#fff":_);let Y=r.pxAlign==1&&E>0;if(Y&&d.translate(E,E),!l){let ie=$e-b/2,le=nt-b/2,Z=Ke+b,W=at+b;M=new Path2D,M.rect(ie,le,Z,W)}l?En(_,b,r.dash,r.cap,v,f,c,S,p):Ls(t,_,b,r.dash,r.cap,v,f,c,S,M,p),Y&&d.translate(-E,-E)}function Ls(t,l,r,f,c,p,S,_,v,b,M){let E=!1;v!=0&&q.forEach((Y,ie)=>{if(Y.series[0]==t){let le=k[Y.series[1]],Z=i[Y.series[1]],W=(le._paths||Il).band;Ht(W)&&(W=Y.dir==1?W[0]:W[1]);let R,ge=null;le.show&&W&&vr(Z,Pe,De)?(ge=Y.fill(n,ie)||p,R=le._paths.clip):W=null,En(l,r,f,c,ge,S,_,v,b,M,R,W),E=!0}}),E||En(l,r,f,c,p,S,_,v,b,M)}const Ai=Al|ai;function En(t,l,r,f,c,p,S,_,v,b,M,E){ki(t,l,r,f,c),(v||b||E)&&(d.save(),v&&d.clip(v),b&&d.clip(b)),E?(_&Ai)==Ai?(d.clip(E),M&&d.clip(M),Zl(c,S),Jl(t,p,l)):_&ai?(Zl(c,S),d.clip(E),Jl(t,p,l)):_&Al&&(d.save(),d.clip(E),M&&d.clip(M),Zl(c,S),d.restore(),Jl(t,p,l)):(Zl(c,S),Jl(t,p,l)),(v||b||E)&&d.restore()}function Jl(t,l,r){r>0&&(l instanceof Map?l.forEach((f,c)=>{d.strokeStyle=$l=c,d.stroke(f)}):l!=null&&t&&d.stroke(l))}function Zl(t,l){l instanceof Map?l.forEach((r,f)=>{d.fillStyle=cl=f,d.fill(r)}):l!=null&&t&&d.fill(l)}function Cs(t,l,r,f){let c=H[t],p;if(f<=0)p=[0,0];else{let S=c._space=c.space(n,t,l,r,f),_=c._incrs=c.incrs(n,t,l,r,f,S);p=Yf(l,r,_,f,S)}return c._found=p}function Pn(t,l,r,f,c,p,S,_,v,b){let M=S%2/2;O==1&&d.translate(M,M),ki(_,S,v,b,_),d.beginPath();let E,Y,ie,le,Z=c+(f==0||f==3?-p:p);r==0?(Y=c,le=Z):(E=c,ie=Z);for(let W=0;W<t.length;W++)l[W]!=null&&(r==0?E=ie=t[W]:Y=le=t[W],d.moveTo(E,Y),d.lineTo(ie,le));d.stroke(),O==1&&d.translate(-M,-M)}function Vs(t){let l=!0;return H.forEach((r,f)=>{if(!r.show)return;let c=x[r.scale];if(c.min==null){r._show&&(l=!1,r._show=!1,al(!1));return}else r._show||(l=!1,r._show=!0,al(!1));let p=r.side,S=p%2,{min:_,max:v}=c,[b,M]=Cs(f,_,v,S==0?K:A);if(M==0)return;let E=c.distr==2,Y=r._splits=r.splits(n,f,_,v,b,M,E),ie=c.distr==2?Y.map(R=>pt[R]):Y,le=c.distr==2?pt[Y[1]]-pt[Y[0]]:b,Z=r._values=r.values(n,r.filter(n,ie,f,M,le),f,M,le);r._rotate=p==2?r.rotate(n,Z,f,M):0;let W=r._size;r._size=ut(r.size(n,Z,f,t)),W!=null&&r._size!=W&&(l=!1)}),l}function Rs(t){let l=!0;return yi.forEach((r,f)=>{let c=r(n,f,Ut,t);c!=Ct[f]&&(l=!1),Ct[f]=c}),l}function zs(){for(let t=0;t<H.length;t++){let l=H[t];if(!l.show||!l._show)continue;let r=l.side,f=r%2,c,p,S=l.stroke(n,t),_=r==0||r==3?-1:1,[v,b]=l._found;if(l.label!=null){let Ie=l.labelGap*_,Qe=Ee((l._lpos+Ie)*oe);xi(l.labelFont[0],S,"center",r==2?"top":qi),d.save(),f==1?(c=p=0,d.translate(Qe,Ee(nt+at/2)),d.rotate((r==3?-rn:rn)/2)):(c=Ee($e+Ke/2),p=Qe);let qt=mo(l.label)?l.label(n,t,v,b):l.label;d.fillText(qt,c,p),d.restore()}if(b==0)continue;let M=x[l.scale],E=f==0?Ke:at,Y=f==0?$e:nt,ie=l._splits,le=M.distr==2?ie.map(Ie=>pt[Ie]):ie,Z=M.distr==2?pt[ie[1]]-pt[ie[0]]:v,W=l.ticks,R=l.border,ge=W.show?W.size:0,ve=Ee(ge*oe),Re=Ee((l.alignTo==2?l._size-ge-l.gap:l.gap)*oe),ue=l._rotate*-rn/180,ke=N(l._pos*oe),Je=(ve+Re)*_,Ge=ke+Je;p=f==0?Ge:0,c=f==1?Ge:0;let st=l.font[0],ht=l.align==1?yl:l.align==2?Wn:ue>0?yl:ue<0?Wn:f==0?"center":r==3?Wn:yl,xt=ue||f==1?"middle":r==2?"top":qi;xi(st,S,ht,xt);let Ze=l.font[1]*l.lineGap,rt=ie.map(Ie=>N(h(Ie,M,E,Y))),mt=l._values;for(let Ie=0;Ie<mt.length;Ie++){let Qe=mt[Ie];if(Qe!=null){f==0?c=rt[Ie]:p=rt[Ie],Qe=""+Qe;let qt=Qe.indexOf(`
`)==-1?[Qe]:Qe.split(/\n/gm);for(let Ye=0;Ye<qt.length;Ye++){let Ki=qt[Ye];ue?(d.save(),d.translate(c,p+Ye*Ze),d.rotate(ue),d.fillText(Ki,0,0),d.restore()):d.fillText(Ki,c,p+Ye*Ze)}}}W.show&&Pn(rt,W.filter(n,le,t,b,Z),f,r,ke,ve,ae(W.width*oe,3),W.stroke(n,t),W.dash,W.cap);let Tt=l.grid;Tt.show&&Pn(rt,Tt.filter(n,le,t,b,Z),f,f==0?2:1,f==0?nt:$e,f==0?at:Ke,ae(Tt.width*oe,3),Tt.stroke(n,t),Tt.dash,Tt.cap),R.show&&Pn([ke],[1],f==0?1:0,f==0?1:2,f==1?nt:$e,f==1?at:Ke,ae(R.width*oe,3),R.stroke(n,t),R.dash,R.cap)}Ve("drawAxes")}function al(t){k.forEach((l,r)=>{r>0&&(l._paths=null,t&&(s==1?(l.min=null,l.max=null):l.facets.forEach(f=>{f.min=null,f.max=null})))})}let Ql=!1,Dn=!1,Vl=[];function Fs(){Dn=!1;for(let t=0;t<Vl.length;t++)Ve(...Vl[t]);Vl.length=0}function pl(){Ql||(zr(Ei),Ql=!0)}function Os(t,l=!1){Ql=!0,Dn=l,t(n),Ei(),l&&Vl.length>0&&queueMicrotask(Fs)}n.batch=Os;function Ei(){if(wn&&(Es(),wn=!1),ol&&(vs(),ol=!1),Kl){if(de(L,yl,pe),de(L,"top",Me),de(L,Hl,K),de(L,Nl,A),de(D,yl,pe),de(D,"top",Me),de(D,Hl,K),de(D,Nl,A),de(w,Hl,At),de(w,Nl,Wt),y.width=Ee(At*oe),y.height=Ee(Wt*oe),H.forEach(({_el:t,_show:l,_size:r,_pos:f,side:c})=>{if(t!=null)if(l){let p=c===3||c===0?r:0,S=c%2==1;de(t,S?"left":"top",f-p),de(t,S?"width":"height",r),de(t,S?"top":"left",S?Me:pe),de(t,S?"height":"width",S?A:K),jn(t,$t)}else Xe(t,$t)}),$l=cl=yn=kn=xn=Tn=bn=Mn=vn=null,je=1,Fl(!0),pe!=il||Me!=Gt||K!=_t||A!=It){al(!1);let t=K/_t,l=A/It;if(Ne&&!Yt&&V.left>=0){V.left*=t,V.top*=l,hl&&bt(hl,Ee(V.left),0,K,A),ml&&bt(ml,0,Ee(V.top),K,A);for(let r=0;r<ot.length;r++){let f=ot[r];f!=null&&(fl[r]*=t,ul[r]*=l,bt(f,ut(fl[r]),ut(ul[r]),K,A))}}if(me.show&&!jl&&me.left>=0&&me.width>0){me.left*=t,me.width*=t,me.top*=l,me.height*=l;for(let r in Fn)de(wl,r,me[r])}il=pe,Gt=Me,_t=K,It=A}Ve("setSize"),Kl=!1}At>0&&Wt>0&&(d.clearRect(0,0,y.width,y.height),Ve("drawClear"),U.forEach(t=>t()),Ve("draw")),me.show&&jl&&(Xl(me),jl=!1),Ne&&Yt&&(jt(null,!0,!1),Yt=!1),J.show&&J.live&&it&&(Rn(),it=!1),m||(m=!0,n.status=1,Ve("ready")),Cl=!1,Ql=!1}n.redraw=(t,l)=>{ol=l||!1,t!==!1?Rt(P,T.min,T.max):pl()};function Ln(t,l){let r=x[t];if(r.from==null){if(ze==0){let f=r.range(n,l.min,l.max,t);l.min=f[0],l.max=f[1]}if(l.min>l.max){let f=l.min;l.min=l.max,l.max=f}if(ze>1&&l.min!=null&&l.max!=null&&l.max-l.min<1e-16)return;t==P&&r.distr==2&&ze>0&&(l.min=dt(l.min,i[0]),l.max=dt(l.max,i[0]),l.min==l.max&&l.max++),F[t]=l,wn=!0,pl()}}n.setScale=Ln;let Cn,Vn,hl,ml,Pi,Di,gl,dl,Li,Ci,he,_e,Vt=!1;const Fe=V.drag;let Le=Fe.x,Ce=Fe.y;Ne&&(V.x&&(Cn=ft(or,D)),V.y&&(Vn=ft(sr,D)),T.ori==0?(hl=Cn,ml=Vn):(hl=Vn,ml=Cn),he=V.left,_e=V.top);const me=n.select=Te({show:!0,over:!0,left:0,width:0,top:0,height:0},e.select),wl=me.show?ft(ir,me.over?D:L):null;function Xl(t,l){if(me.show){for(let r in t)me[r]=t[r],r in Fn&&de(wl,r,t[r]);l!==!1&&Ve("setSelect")}}n.setSelect=Xl;function Hs(t){if(k[t].show)be&&jn(ye[t],$t);else if(be&&Xe(ye[t],$t),Ne){let r=rl?ot[0]:ot[t];r!=null&&bt(r,-10,-10,K,A)}}function Rt(t,l,r){Ln(t,{min:l,max:r})}function vt(t,l,r,f){l.focus!=null&&Ys(t),l.show!=null&&k.forEach((c,p)=>{p>0&&(t==p||t==null)&&(c.show=l.show,Hs(p),s==2?(Rt(c.facets[0].scale,null,null),Rt(c.facets[1].scale,null,null)):Rt(c.scale,null,null),pl())}),r!==!1&&Ve("setSeries",t,l),f&&Ol("setSeries",n,t,l)}n.setSeries=vt;function Ns(t,l){Te(q[t],l)}function Ws(t,l){t.fill=X(t.fill||null),t.dir=ne(t.dir,-1),l=l??q.length,q.splice(l,0,t)}function Gs(t){t==null?q.length=0:q.splice(t,1)}n.addBand=Ws,n.setBand=Ns,n.delBand=Gs;function Is(t,l){k[t].alpha=l,Ne&&ot[t]!=null&&(ot[t].style.opacity=l),be&&ye[t]&&(ye[t].style.opacity=l)}let Et,zt,Kt;const Sl={focus:!0};function Ys(t){if(t!=Kt){let l=t==null,r=yt.alpha!=1;k.forEach((f,c)=>{if(s==1||c>0){let p=l||c==0||c==t;f._focus=l?null:p,r&&Is(c,p?1:yt.alpha)}}),Kt=t,r&&pl()}}be&&sl&&We(Qi,se,t=>{V._lock||(Bt(t),Kt!=null&&vt(null,Sl,!0,xe.setSeries))});function kt(t,l,r){let f=x[l];r&&(t=t/oe-(f.ori==1?Me:pe));let c=K;f.ori==1&&(c=A,t=c-t),f.dir==-1&&(t=c-t);let p=f._min,S=f._max,_=t/c,v=p+(S-p)*_,b=f.distr;return b==3?xl(10,v):b==4?xr(v,f.asinh):b==100?f.bwd(v):v}function Bs(t,l){let r=kt(t,P,l);return dt(r,i[0],Pe,De)}n.valToIdx=t=>dt(t,i[0]),n.posToIdx=Bs,n.posToVal=kt,n.valToPos=(t,l,r)=>x[l].ori==0?a(t,x[l],r?Ke:K,r?$e:0):u(t,x[l],r?at:A,r?nt:0),n.setCursor=(t,l,r)=>{he=t.left,_e=t.top,jt(null,l,r)};function Vi(t,l){de(wl,yl,me.left=t),de(wl,Hl,me.width=l)}function Ri(t,l){de(wl,"top",me.top=t),de(wl,Nl,me.height=l)}let Rl=T.ori==0?Vi:Ri,zl=T.ori==1?Vi:Ri;function Us(){if(be&&J.live)for(let t=s==2?1:0;t<k.length;t++){if(t==0&&lt)continue;let l=J.values[t],r=0;for(let f in l)St[t][r++].firstChild.nodeValue=l[f]}}function Rn(t,l){if(t!=null&&(t.idxs?t.idxs.forEach((r,f)=>{fe[f]=r}):Ar(t.idx)||fe.fill(t.idx),J.idx=fe[0]),be&&J.live){for(let r=0;r<k.length;r++)(r>0||s==1&&!lt)&&Ks(r,fe[r]);Us()}it=!1,l!==!1&&Ve("setLegend")}n.setLegend=Rn;function Ks(t,l){let r=k[t],f=t==0&&j==2?pt:i[t],c;lt?c=r.values(n,t,l)??Lt:(c=r.value(n,l==null?null:f[l],t,l),c=c==null?Lt:{_:c}),J.values[t]=c}function jt(t,l,r){Li=he,Ci=_e,[he,_e]=V.move(n,he,_e),V.left=he,V.top=_e,Ne&&(hl&&bt(hl,Ee(he),0,K,A),ml&&bt(ml,0,Ee(_e),K,A));let f,c=Pe>De;Et=ce,zt=null;let p=T.ori==0?K:A,S=T.ori==1?K:A;if(he<0||ze==0||c){f=V.idx=null;for(let _=0;_<k.length;_++){let v=ot[_];v!=null&&bt(v,-10,-10,K,A)}sl&&vt(null,Sl,!0,t==null&&xe.setSeries),J.live&&(fe.fill(f),it=!0)}else{let _,v,b;s==1&&(_=T.ori==0?he:_e,v=kt(_,P),f=V.idx=dt(v,i[0],Pe,De),b=C(i[0][f],T,p,0));let M=-10,E=-10,Y=0,ie=0,le=!0,Z="",W="";for(let R=s==2?1:0;R<k.length;R++){let ge=k[R],ve=fe[R],Re=ve==null?null:s==1?i[R][ve]:i[R][1][ve],ue=V.dataIdx(n,R,f,v),ke=ue==null?null:s==1?i[R][ue]:i[R][1][ue];if(it=it||ke!=Re||ue!=ve,fe[R]=ue,R>0&&ge.show){let Je=ue==null?-10:ue==f?b:C(s==1?i[0][ue]:i[R][0][ue],T,p,0),Ge=ke==null?-10:I(ke,s==1?x[ge.scale]:x[ge.facets[1].scale],S,0);if(sl&&ke!=null){let st=T.ori==1?he:_e,ht=Ae(yt.dist(n,R,ue,Ge,st));if(ht<Et){let xt=yt.bias;if(xt!=0){let Ze=kt(st,ge.scale),rt=ke>=0?1:-1,mt=Ze>=0?1:-1;mt==rt&&(mt==1?xt==1?ke>=Ze:ke<=Ze:xt==1?ke<=Ze:ke>=Ze)&&(Et=ht,zt=R)}else Et=ht,zt=R}}if(it||rl){let st,ht;T.ori==0?(st=Je,ht=Ge):(st=Ge,ht=Je);let xt,Ze,rt,mt,Tt,Ie,Qe=!0,qt=Oe.bbox;if(qt!=null){Qe=!1;let Ye=qt(n,R);rt=Ye.left,mt=Ye.top,xt=Ye.width,Ze=Ye.height}else rt=st,mt=ht,xt=Ze=Oe.size(n,R);if(Ie=Oe.fill(n,R),Tt=Oe.stroke(n,R),rl)R==zt&&Et<=yt.prox&&(M=rt,E=mt,Y=xt,ie=Ze,le=Qe,Z=Ie,W=Tt);else{let Ye=ot[R];Ye!=null&&(fl[R]=rt,ul[R]=mt,oo(Ye,xt,Ze,Qe),no(Ye,Ie,Tt),bt(Ye,ut(rt),ut(mt),K,A))}}}}if(rl){let R=yt.prox,ge=Kt==null?Et<=R:Et>R||zt!=Kt;if(it||ge){let ve=ot[0];ve!=null&&(fl[0]=M,ul[0]=E,oo(ve,Y,ie,le),no(ve,Z,W),bt(ve,ut(M),ut(E),K,A))}}}if(me.show&&Vt)if(t!=null){let[_,v]=xe.scales,[b,M]=xe.match,[E,Y]=t.cursor.sync.scales,ie=t.cursor.drag;if(Le=ie._x,Ce=ie._y,Le||Ce){let{left:le,top:Z,width:W,height:R}=t.select,ge=t.scales[E].ori,ve=t.posToVal,Re,ue,ke,Je,Ge,st=_!=null&&b(_,E),ht=v!=null&&M(v,Y);st&&Le?(ge==0?(Re=le,ue=W):(Re=Z,ue=R),ke=x[_],Je=C(ve(Re,E),ke,p,0),Ge=C(ve(Re+ue,E),ke,p,0),Rl(wt(Je,Ge),Ae(Ge-Je))):Rl(0,p),ht&&Ce?(ge==1?(Re=le,ue=W):(Re=Z,ue=R),ke=x[v],Je=I(ve(Re,Y),ke,S,0),Ge=I(ve(Re+ue,Y),ke,S,0),zl(wt(Je,Ge),Ae(Ge-Je))):zl(0,S)}else On()}else{let _=Ae(Li-Pi),v=Ae(Ci-Di);if(T.ori==1){let Y=_;_=v,v=Y}Le=Fe.x&&_>=Fe.dist,Ce=Fe.y&&v>=Fe.dist;let b=Fe.uni;b!=null?Le&&Ce&&(Le=_>=b,Ce=v>=b,!Le&&!Ce&&(v>_?Ce=!0:Le=!0)):Fe.x&&Fe.y&&(Le||Ce)&&(Le=Ce=!0);let M,E;Le&&(T.ori==0?(M=gl,E=he):(M=dl,E=_e),Rl(wt(M,E),Ae(E-M)),Ce||zl(0,S)),Ce&&(T.ori==1?(M=gl,E=he):(M=dl,E=_e),zl(wt(M,E),Ae(E-M)),Le||Rl(0,p)),!Le&&!Ce&&(Rl(0,0),zl(0,0))}if(Fe._x=Le,Fe._y=Ce,t==null){if(r){if(Ui!=null){let[_,v]=xe.scales;xe.values[0]=_!=null?kt(T.ori==0?he:_e,_):null,xe.values[1]=v!=null?kt(T.ori==1?he:_e,v):null}Ol(In,n,he,_e,K,A,f)}if(sl){let _=r&&xe.setSeries,v=yt.prox;Kt==null?Et<=v&&vt(zt,Sl,!0,_):Et>v?vt(null,Sl,!0,_):zt!=Kt&&vt(zt,Sl,!0,_)}}it&&(J.idx=f,Rn()),l!==!1&&Ve("setCursor")}let Ft=null;Object.defineProperty(n,"rect",{get(){return Ft==null&&Fl(!1),Ft}});function Fl(t=!1){t?Ft=null:(Ft=D.getBoundingClientRect(),Ve("syncRect",Ft))}function zi(t,l,r,f,c,p,S){V._lock||Vt&&t!=null&&t.movementX==0&&t.movementY==0||(zn(t,l,r,f,c,p,S,!1,t!=null),t!=null?jt(null,!0,!0):jt(l,!0,!1))}function zn(t,l,r,f,c,p,S,_,v){if(Ft==null&&Fl(!1),Bt(t),t!=null)r=t.clientX-Ft.left,f=t.clientY-Ft.top;else{if(r<0||f<0){he=-10,_e=-10;return}let[b,M]=xe.scales,E=l.cursor.sync,[Y,ie]=E.values,[le,Z]=E.scales,[W,R]=xe.match,ge=l.axes[0].side%2==1,ve=T.ori==0?K:A,Re=T.ori==1?K:A,ue=ge?p:c,ke=ge?c:p,Je=ge?f:r,Ge=ge?r:f;if(le!=null?r=W(b,le)?h(Y,x[b],ve,0):-10:r=ve*(Je/ue),Z!=null?f=R(M,Z)?h(ie,x[M],Re,0):-10:f=Re*(Ge/ke),T.ori==1){let st=r;r=f,f=st}}v&&(l==null||l.cursor.event.type==In)&&((r<=1||r>=K-1)&&(r=Qt(r,K)),(f<=1||f>=A-1)&&(f=Qt(f,A))),_?(Pi=r,Di=f,[gl,dl]=V.move(n,r,f)):(he=r,_e=f)}const Fn={width:0,height:0,left:0,top:0};function On(){Xl(Fn,!1)}let Fi,Oi,Hi,Ni;function Wi(t,l,r,f,c,p,S){Vt=!0,Le=Ce=Fe._x=Fe._y=!1,zn(t,l,r,f,c,p,S,!0,!1),t!=null&&(We(Yn,Un,Gi,!1),Ol(Ji,n,gl,dl,K,A,null));let{left:_,top:v,width:b,height:M}=me;Fi=_,Oi=v,Hi=b,Ni=M}function Gi(t,l,r,f,c,p,S){Vt=Fe._x=Fe._y=!1,zn(t,l,r,f,c,p,S,!1,!0);let{left:_,top:v,width:b,height:M}=me,E=b>0||M>0,Y=Fi!=_||Oi!=v||Hi!=b||Ni!=M;if(E&&Y&&Xl(me),Fe.setScale&&E&&Y){let ie=_,le=b,Z=v,W=M;if(T.ori==1&&(ie=v,le=M,Z=_,W=b),Le&&Rt(P,kt(ie,P),kt(ie+le,P)),Ce)for(let R in x){let ge=x[R];R!=P&&ge.from==null&&ge.min!=ce&&Rt(R,kt(Z+W,R),kt(Z,R))}On()}else V.lock&&(V._lock=!V._lock,jt(l,!0,t!=null));t!=null&&(nl(Yn,Un),Ol(Yn,n,he,_e,K,A,null))}function js(t,l,r,f,c,p,S){if(V._lock)return;Bt(t);let _=Vt;if(Vt){let v=!0,b=!0,M=10,E,Y;T.ori==0?(E=Le,Y=Ce):(E=Ce,Y=Le),E&&Y&&(v=he<=M||he>=K-M,b=_e<=M||_e>=A-M),E&&v&&(he=he<gl?0:K),Y&&b&&(_e=_e<dl?0:A),jt(null,!0,!0),Vt=!1}he=-10,_e=-10,fe.fill(null),jt(null,!0,!0),_&&(Vt=_)}function Ii(t,l,r,f,c,p,S){V._lock||(Bt(t),_n(),On(),t!=null&&Ol(Xi,n,he,_e,K,A,null))}function Yi(){H.forEach(Bf),Sn(n.width,n.height,!0)}Jt(tn,kl,Yi);const _l={};_l.mousedown=Wi,_l.mousemove=zi,_l.mouseup=Gi,_l.dblclick=Ii,_l.setSeries=(t,l,r,f)=>{let c=xe.match[2];r=c(n,l,r),r!=-1&&vt(r,f,!0,!1)},Ne&&(We(Ji,D,Wi),We(In,D,zi),We(Zi,D,t=>{Bt(t),Fl(!1)}),We(Qi,D,js),We(Xi,D,Ii),gi.add(n),n.syncRect=Fl);const en=n.hooks=e.hooks||{};function Ve(t,l,r){Dn?Vl.push([t,l,r]):t in en&&en[t].forEach(f=>{f.call(null,n,l,r)})}(e.plugins||[]).forEach(t=>{for(let l in t.hooks)en[l]=(en[l]||[]).concat(t.hooks[l])});const Bi=(t,l,r)=>r,xe=Te({key:null,setSeries:!1,filters:{pub:So,sub:So},scales:[P,k[1]?k[1].scale:null],match:[_o,_o,Bi],values:[null,null]},V.sync);xe.match.length==2&&xe.match.push(Bi),V.sync=xe;const Ui=xe.key,Hn=ns(Ui);function Ol(t,l,r,f,c,p,S){xe.filters.pub(t,l,r,f,c,p,S)&&Hn.pub(t,l,r,f,c,p,S)}Hn.sub(n);function qs(t,l,r,f,c,p,S){xe.filters.sub(t,l,r,f,c,p,S)&&_l[t](null,l,r,f,c,p,S)}n.pub=qs;function $s(){Hn.unsub(n),gi.delete(n),Nt.clear(),$n(tn,kl,Yi),g.remove(),se?.remove(),Ve("destroy")}n.destroy=$s;function Nn(){Ve("init",e,i),vi(i||e.data,!1),F[P]?Ln(P,F[P]):_n(),jl=me.show&&(me.width>0||me.height>0),Yt=it=!0,Sn(e.width,e.height)}return k.forEach(_i),H.forEach(As),o?o instanceof HTMLElement?(o.appendChild(g),Nn()):o(n,Nn):Nn(),n}He.assign=Te,He.fmtNum=Qn,He.rangeNum=sn,He.rangeLog=on,He.rangeAsinh=Jn,He.orient=el,He.pxRatio=oe,He.join=Rr,He.fmtDate=li,He.tzDate=Ur,He.sync=ns;{He.addGap=Ef,He.clipGaps=hn;let e=He.paths={points:cs};e.linear=ps,e.stepped=Lf,e.bars=Cf,e.spline=Rf};
return { default: He };
})();

modules["plots.js"] = (() => {
// SPDX-License-Identifier: Apache-2.0

/** The plots over the last minute. uPlot draws them; it is given new data at most four times a second. */
const { html, Component, createRef } = modules["html.js"];
const { number } = modules["key.js"];
const { WINDOW_S } = modules["model.js"];
const { t } = modules["text.js"];
const { default: uPlot } = modules["vendor/uplot.mjs"];

/** Plots shows two plots: what waits, and how fast events come. */
function Plots({ lab }) {
  const shared = { model: lab.model, version: lab.model.samplesVersion, now: lab.now };
  const look = lab.ui.language + lab.ui.theme; // a plot has its texts and colours from its start
  return [
    html`<${Plot} key=${"depth" + look} ...${shared} name="depth"
      series=${[["depth", 0], ["backlog", 1], ["retries", 2]]}
      columns=${[(s) => s.depth, (s) => s.backlog, (s) => s.retries]} write=${number} />`,
    html`<${Plot} key=${"rate" + look} ...${shared} name="rate" fill
      series=${[["perSecond", 4]]} columns=${[(s) => s.perSecond]}
      write=${rate} />`,
  ];
}

/** AGES are the labelled seconds of the time axis. */
const AGES = [60, 40, 20, 0];

/** rate writes events per second: small rates with a fraction. */
const rate = (n) => number(n >= 100 ? Math.round(n) : Math.round((n ?? 0) * 10) / 10);

/** ceiling is the upper end of a scale: 4, or the next of 10, 20, 40, 100, 200, 400, … */
function ceiling(max) {
  if (!(max > 4)) return 4;
  const decade = 10 ** Math.floor(Math.log10(max));
  return [1, 2, 4, 10].find((n) => n * decade >= max) * decade;
}

/** HEIGHT is that of a plot without its legend, in pixels. */
const HEIGHT = 110;

/** Plot owns one uPlot; it is created once and only given data after that, while it is in view. */
class Plot extends Component {
  box = createRef();

  shouldComponentUpdate(next) {
    return next.version !== this.props.version || Math.abs(next.now - this.props.now) >= 500;
  }

  componentDidMount() {
    this.plot = new uPlot(this.options(), this.data(), this.box.current);
    this.observer = new ResizeObserver(([entry]) => {
      const width = Math.floor(entry.contentRect.width);
      if (width > 0 && width !== this.plot.width) this.plot.setSize({ width, height: this.plot.height });
    });
    this.observer.observe(this.box.current);
    this.view = new IntersectionObserver((entries) => {
      this.inView = entries.at(-1).isIntersecting;
      this.componentDidUpdate();
    });
    this.view.observe(this.box.current);
  }

  componentDidUpdate() {
    if (this.inView) this.plot.setData(this.data());
  }

  componentWillUnmount() {
    this.observer.disconnect();
    this.view.disconnect();
    this.plot.destroy();
  }

  data() {
    return this.props.model.series(...this.props.columns);
  }

  options() {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const axis = {
      stroke: colour("--dim"), font: "11px system-ui, sans-serif",
      grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false },
    };
    return {
      width: Math.max(this.box.current.clientWidth, 160), height: HEIGHT,
      legend: { show: false }, cursor: { show: false }, padding: [8, 14, 0, 0],
      scales: {
        x: { time: true, range: () => [this.props.now / 1000 - WINDOW_S, this.props.now / 1000] },
        y: { range: (u, min, max) => [0, ceiling(max)] },
      },
      axes: [
        {
          ...axis, size: 22, splits: () => AGES.map((age) => this.props.now / 1000 - age),
          values: () => AGES.map((age) => `${-age} s`),
        },
        {
          ...axis, space: 26, size: 46, splits: (u, i, min, max) => [0, max / 2, max],
          values: (u, ticks) => ticks.map((tick) => this.props.write(tick)),
        },
      ],
      series: [{}, ...this.props.series.map(([, index]) => ({
        stroke: colour("--p" + index), width: 1.75, spanGaps: true,
        fill: this.props.fill ? colour("--p" + index) + "22" : undefined,
        points: { show: false }, paths: uPlot.paths.stepped({ align: 1 }),
      }))],
    };
  }

  render({ name, series, columns, model, write }) {
    const last = model.samples.at(-1) ?? {};
    const value = (i) => write(columns[i](last));
    const entries = series.map(([label, index], i) => html`<li key=${label}>
      <i class=${"p" + index} aria-hidden="true"></i>${t("plot." + label)} <b>${value(i)}</b></li>`);
    const note = entries.length > 1 ? t("plot.window", { s: WINDOW_S }) : html`<b>${value(0)}</b>`;
    return html`<section class=${"card plot plot-" + name} aria-labelledby=${"title-" + name}>
      <header><h2 id=${"title-" + name}>${t(`plot.title.${name}`)}</h2>
        <small>${note}</small></header>
      <div class="canvas" ref=${this.box} role="img" aria-label=${t(`plot.title.${name}`)}></div>
      ${entries.length > 1 && html`<ul class="legend">${entries}</ul>`}
    </section>`;
  }
}
return { Plots };
})();

modules["present.js"] = (() => {
// SPDX-License-Identifier: Apache-2.0

/**
 * The clock of the page. A frame is a state, and its hops are the way to it. The presenter shows a
 * frame in stages: an item leaves its card, travels, and arrives; only then does the next card
 * change.
 *
 *	T1  each card shows the newest frame of which every item has arrived at this card
 *	T2  a later frame never shows a card as it was in an earlier one
 *	T3  a page at rest shows the newest frame
 *
 * While time is slow, while the program is paused and while a lesson plays, each stage begins when
 * the one before has ended, and a frame when the one before is shown. At full speed there is no time
 * for this: stages overlap, and frames begin when they arrive.
 */
const { RAILS, cardOf, railsOf } = modules["rails.js"];

/** TRAVEL_MS is how long an item travels, GAP_MS the time between stages at full speed. */
const TRAVEL_MS = 520;
const QUICK_MS = 380;
const GAP_MS = 60;

/** MAX_STAGES bounds the stages of a frame, MAX_LAG_MS how far the page is behind the program. */
const MAX_STAGES = 12;
const MAX_LAG_MS = 6000;

/** PARTS are the fields of a frame that each card shows. */
const PARTS = {
  server: ["server"], reflector: ["reflector"], queue: ["queue"], store: ["store"],
  handlers: ["handlers", "log"], workqueue: ["workqueue"], workers: ["workers"], election: ["election"],
};
const CARDS = Object.keys(PARTS);

class Presenter {
  /**
   * model takes what is shown. depart is called when hops leave along a rail, arrive when they have
   * happened. still reports whether nothing may move.
   */
  constructor({ model, depart, arrive, still }) {
    Object.assign(this, { model, depart, arrive, still });
    this.follow = ""; // the key that alone takes stages
    this.reset();
  }

  /** reset forgets what is on its way. */
  reset() {
    this.due = []; // in the order of their times
    this.busyUntil = 0;
    this.shownBy = {}; // the seq of the frame that each part shows
  }

  /** take presents a frame, or shows it at once if nothing may move. */
  take(frame) {
    const now = performance.now();
    if (this.still() || !this.model.frame || frame.lesson?.state === "preparing") return this.jump(frame);
    const strict = frame.mode !== "run" || (frame.lesson && frame.lesson.state !== "done");
    if (strict !== this.strict || this.busyUntil - now > MAX_LAG_MS) this.flush();
    this.strict = strict;
    const start = strict ? Math.max(now, this.busyUntil) : now;
    const slow = frame.mode === "slow" ? Math.min(frame.delayMs / 3, 880) : 0;
    const travel = strict ? TRAVEL_MS + slow : QUICK_MS;
    this.schedule(frame, start, travel, strict ? travel : GAP_MS);
  }

  schedule(frame, start, travel, gap) {
    const arrivals = {};
    const departures = {};
    let at = start;
    let end = start;
    for (const { rail, card, moving, hops } of stagesOf(frame.hops ?? [], this.follow)) {
      const [from, to] = RAILS[rail] ?? [card, card];
      const arrival = rail ? at + travel : at;
      departures[from] ??= at;
      arrivals[to] = arrival;
      if (rail) this.at(at, () => this.depart(rail, moving, travel));
      this.at(arrival, () => this.arrive(hops));
      end = Math.max(end, arrival);
      if (rail) at += gap;
    }
    for (const card of CARDS) {
      this.at(arrivals[card] ?? departures[card] ?? start, () => this.show(card, frame));
    }
    this.at(end, () => this.show("rest", frame));
    this.due.sort((a, b) => a.at - b.at);
    this.busyUntil = Math.max(this.busyUntil, end);
  }

  at(at, act) {
    this.due.push({ at, act });
  }

  /** show shows a part of a frame: a card, or the rest. */
  show(part, frame) {
    if (this.shownBy[part] > frame.seq) return;
    this.shownBy[part] = frame.seq;
    this.model.show(frame, PARTS[part] ?? Object.keys(frame).filter(isRest));
  }

  /** advance shows what is due. It returns the time until the next change, or null. */
  advance() {
    const now = performance.now();
    let n = 0;
    while (n < this.due.length && this.due[n].at <= now) n++;
    for (const { act } of this.due.splice(0, n)) act();
    return this.due.length ? this.due[0].at - now : null;
  }

  /** flush shows at once what is on its way. */
  flush() {
    for (const { act } of this.due.splice(0)) act();
    this.busyUntil = 0;
  }

  /** jump shows a frame at once. */
  jump(frame) {
    this.flush();
    for (const part of [...CARDS, "rest"]) this.show(part, frame);
    this.arrive(frame.hops ?? []);
  }
}

const inCards = new Set(Object.values(PARTS).flat());
const isRest = (field) => !inCards.has(field);

/**
 * stagesOf arranges hops in stages: each is one rail, or one card without a rail. The hops of a key
 * are in stages that follow each other. Hops of other keys share them, as far as possible. While a
 * key is followed, the hops of others take no stage.
 */
function stagesOf(hops, follow) {
  const stages = [];
  const reached = new Map(); // by key: the stage of its last hop
  const join = (hop, rail, happens) => {
    const card = cardOf(hop);
    const last = reached.get(hop.key) ?? -1;
    const same = (stage) => stage.rail === rail && stage.card === card;
    const from = last >= 0 && same(stages[last]) ? last : last + 1;
    let i = stages.findIndex((stage, at) => at >= from && same(stage));
    if (i < 0 && stages.length >= MAX_STAGES) i = stages.findLastIndex(same);
    if (i < 0) i = stages.push({ rail, card, moving: [], hops: [] }) - 1;
    if (rail) stages[i].moving.push(hop);
    if (happens) stages[i].hops.push(hop);
    reached.set(hop.key, i);
  };
  for (const hop of causesFirst(hops)) {
    const rails = follow && hop.key && hop.key !== follow ? [] : railsOf(hop);
    rails.slice(0, -1).forEach((rail) => join(hop, rail, false));
    join(hop, rails.at(-1), true);
  }
  return stages;
}

/** causesFirst puts a write, which is recorded when it is answered, before the event that it has caused. */
function causesFirst(hops) {
  const ordered = [];
  for (const hop of hops) {
    const caused = railsOf(hop)[0] !== "write" ? -1 : ordered.findIndex(
      (other) => other.key === hop.key && railsOf(other)[0] === "wire");
    ordered.splice(caused < 0 ? ordered.length : caused, 0, hop);
  }
  return ordered;
}
return { Presenter };
})();

modules["program.js"] = (() => {
// SPDX-License-Identifier: Apache-2.0

/** The program in this browser, in a worker: its source of frames, and the bar while it loads. */
const { html } = modules["html.js"];
const { LiveSource } = modules["source.js"];
const { t } = modules["text.js"];

/** WORKER is the script that loads and runs the program. It is beside the page. */
const WORKER = "worker.js";

/**
 * WorkerSource follows a program in a worker. Each message is JSON in both directions: see
 * protocol.md. on.loading receives the loaded part of the program, from 0 to 1, and on.failed why it
 * does not run.
 */
class WorkerSource extends LiveSource {
  start() {
    this.requests = [];
    try {
      this.worker = new Worker(WORKER);
    } catch (error) {
      this.on.failed(error.message); // the page was opened as a file, for example
      return;
    }
    this.worker.addEventListener("message", (event) => this.receive(JSON.parse(event.data)));
    this.worker.addEventListener("error", (event) => this.on.failed(event.message || WORKER));
  }

  stop() {
    this.worker.terminate();
  }

  receive({ loaded, failed, hello, lessons, frame, n, ...answer }) {
    if (loaded !== undefined) this.on.loading(Math.min(loaded, 1));
    else if (failed !== undefined) this.on.failed(failed);
    else if (hello) {
      this.on.hello(hello);
      this.on.connection("connected");
    } else if (lessons) this.on.lessons(lessons.lessons);
    else if (frame) this.on.frame(frame);
    else this.requests[n](answer);
  }

  /** ask sends a request, and returns the answer to it. */
  ask(request) {
    return new Promise((resolve) => {
      const n = this.requests.push(resolve) - 1;
      this.worker.postMessage(JSON.stringify({ n, ...request }));
    });
  }

  async find(text) {
    return (await this.ask({ find: text })).keys ?? [];
  }

  async post(command) {
    return (await this.ask({ command })).error ?? "";
  }
}

/** Loading reports how much of the program is loaded, or why the page plays a recording. */
function Loading({ lab }) {
  const { loaded, failed } = lab.ui.program;
  if (failed !== undefined) {
    return html`<p class="program" role="status">${t("program.failed", { error: failed })}${" "}
      <a href="index.html">${t("program.recorded")}</a></p>`;
  }
  return html`<p class="program"><label>${t("program.loading")}
    <progress max="1" value=${loaded}></progress></label>${" "}
    <span class="dim">${t("program.meanwhile")}</span></p>`;
}
return { WorkerSource, Loading };
})();

modules["strip.js"] = (() => {
// SPDX-License-Identifier: Apache-2.0

/**
 * The strip: all pieces of the pipeline in one or two rows, on a screen that is too small for all
 * cards. It stays in view, tokens travel along it, and each piece leads to its card. The Follower
 * keeps the card of the present hop in view.
 */
const { html, cx } = modules["html.js"];
const { hasCaption } = modules["caption.js"];
const { number, shortName } = modules["key.js"];
const { pointed } = modules["lessons.js"];
const { cardOf } = modules["rails.js"];
const { named, t } = modules["text.js"];

/** SMALL is the screen on which style.css shows the strip. */
const SMALL = matchMedia("(max-width: 1180px), (max-height: 699px)");

/** count writes a number that has at most four characters. */
const count = (n) => number(n, "compact");

/** VALUES is what the strip says of each piece, in the order in which a change passes them. */
const VALUES = {
  server: ({ server }) => (server?.up === false ? t("strip.down") : `rv ${server?.rv ?? "–"}`),
  reflector: ({ reflector }) => named("phase", reflector?.phase ?? "idle"),
  queue: ({ queue }) => (queue?.kind === "Parts" ? "–" : t("queue.keys", { n: count(queue?.keys) })),
  store: ({ store }) => t("objects", { n: count(store?.objects) }),
  handlers: ({ handlers = [] }) =>
    t("handlers.pending", { n: count(handlers.reduce((sum, { pending = 0 }) => sum + pending, 0)) }),
  workqueue: ({ workqueue }) => t("strip.queued", { n: count(workqueue?.queued) }),
  workers: ({ workers }) => t("strip.running", { n: count(workers?.running?.length) }),
  election: ({ election }) =>
    !election?.on ? t("election.off")
      : election.leftMs > 0 ? t("strip.leader", { name: shortName(election.leader) })
      : t("strip.noLeader"), // the lease may still name one
};
const PIECES = Object.keys(VALUES);

function Strip({ lab }) {
  const { frame, follower } = lab;
  const shown = [...pointed(lab), ...(frame?.code?.watch ?? [])];
  const at = placesOf(lab);
  return html`<nav class="strip" aria-label=${t("strip.all")}>
    ${frame && PIECES.map((piece) => html`<button key=${piece} type="button" data-piece=${piece}
      title=${t(`piece.${piece}.name`)} aria-current=${at.includes(piece) ? "true" : undefined}
      class=${cx((lab.lit.has(piece) || at.includes(piece)) && "lit", shown.includes(piece) && "pointed")}
      onClick=${() => follower.visit(piece)}>
      <b>${piece === "queue" ? frame.queue?.kind : t("strip.names")[piece]}</b>
      <small>${VALUES[piece](frame)}</small></button>`)}
    <div key="overlay" class="overlay" aria-hidden="true"></div>
  </nav>`;
}

/**
 * placesOf returns the pieces that a reader should look at: what a lesson that
 * has stopped points to, what the caption is about, or the piece of a lesson that was lit last.
 */
function placesOf(lab) {
  const lesson = lab.frame?.lesson;
  const watch = pointed(lab);
  if (lesson?.stop && watch.length) return watch;
  if (hasCaption(lab)) return lab.caption ? [cardOf(lab.caption)] : [];
  const lit = watch.filter((piece) => lab.lit.has(piece)).sort((a, b) => lab.lit.get(a) - lab.lit.get(b));
  return [lit.at(-1) ?? lab.follower.last(watch) ?? watch[0]].filter(Boolean);
}

/** VISIT_MS is how long the card that a reader has chosen stays in view. */
const VISIT_MS = 4000;
const MARGIN_PX = 8;

/** SCROLLS are the keys that scroll a page. */
const SCROLLS = new Set(["ArrowUp", "ArrowDown", "PageUp", "PageDown", "Home", "End"]);

/**
 * Follower scrolls to the card of the present hop.
 *
 *	L1  it moves nothing on a screen that has no strip, and nothing while a pointer is pressed
 *	L2  a reader who scrolls is left alone until the next step, or a tap on the strip
 *	L3  where its smooth scrolling ends, it looks once more whether the cards are in view
 */
class Follower {
  constructor() {
    this.resume();
    this.pressed = false;
    const inPage = ({ target }) => !target.closest?.(".panel, .strip, .top, dialog, input, select");
    const scrolls = (event) => inPage(event) && (this.left = true);
    addEventListener("wheel", scrolls, { passive: true });
    addEventListener("touchmove", scrolls, { passive: true });
    addEventListener("keydown", (event) => SCROLLS.has(event.key) && scrolls(event));
    addEventListener("pointerdown", ({ clientX }) => {
      this.pressed = true;
      if (clientX >= document.documentElement.clientWidth) this.left = true; // on the scroll bar
    });
    for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => (this.pressed = false));
    addEventListener("scrollend", () => {
      const again = this.moving && !this.left && !this.pressed;
      this.moving = false;
      if (again) reveal(this.shown.split(","));
    });
  }

  /** resume follows again, from the next drawing. */
  resume() {
    this.left = false;
    this.until = 0; // until when a chosen card stays in view
    this.room = ""; // the heights that leave room for cards
    this.shown = "";
  }

  /** last is the piece in a list that was shown last, if it still is the place. */
  last(pieces) {
    return pieces.find((piece) => piece === this.shown);
  }

  /** visit shows the card that the reader has chosen, and gives it the focus. */
  visit(piece) {
    this.resume();
    this.until = performance.now() + VISIT_MS;
    reveal([piece]);
    document.querySelector(`#card-${piece} .title`)?.focus({ preventScroll: true });
  }

  /**
   * follow scrolls to the cards of the present hop, if they have changed or the room for them has: the
   * sentence of a stop is higher than a caption.
   */
  follow(lab) {
    const { id, step, stop } = lab.frame?.lesson ?? {};
    const turn = [id, step, Boolean(stop), lab.frame?.mode].join();
    if (turn !== this.turn) this.resume();
    this.turn = turn;
    if (!SMALL.matches || this.left || this.pressed || performance.now() < this.until) return;
    const places = placesOf(lab);
    const room = [".lead", ".panel"].map((part) => document.querySelector(part)?.offsetHeight).join();
    const same = places.join() === this.shown && room === this.room;
    if (!places.length || (same && !stop)) return; // at a stop, what is above may still grow
    [this.shown, this.room] = [places.join(), room];
    this.moving = reveal(places);
  }
}

/**
 * reveal scrolls until cards are in view, between the strip and a panel below. If not all of them
 * fit there, it is the first one, and if that is too high, its top. It returns whether it scrolls.
 */
function reveal(pieces) {
  const boxes = pieces.map((piece) => document.getElementById("card-" + piece)?.getBoundingClientRect())
    .filter(Boolean).sort((a, b) => a.top - b.top);
  if (!boxes.length) return false;
  const { top, bottom } = visible();
  const high = (box) => boxes[0].top + bottom - top >= box.bottom;
  const last = boxes.filter(high).at(-1) ?? boxes[0];
  if (boxes[0].top >= top && last.bottom <= bottom) return false;
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  scrollBy({ top: boxes[0].top - top, behavior: still ? "instant" : "smooth" });
  return true;
}

/** visible is the part of the screen that neither the header and the strip nor the panel cover. */
function visible() {
  const lead = document.querySelector(".lead");
  const panel = document.querySelector(".panel");
  const under = Number.parseFloat(getComputedStyle(lead).top) || 0;
  const fixed = getComputedStyle(panel).position === "fixed";
  return {
    top: under + lead.offsetHeight + MARGIN_PX,
    bottom: (fixed ? panel.getBoundingClientRect().top : innerHeight) - MARGIN_PX,
  };
}

/** measureCovers keeps the heights of what covers the page, for style.css. */
function measureCovers() {
  const covers = { "--lead": ".lead", "--panel": ".panel" };
  const measure = () => {
    for (const [name, selector] of Object.entries(covers)) {
      const height = document.querySelector(selector)?.offsetHeight ?? 0;
      document.documentElement.style.setProperty(name, height + "px");
    }
  };
  const observer = new ResizeObserver(measure);
  for (const selector of Object.values(covers)) observer.observe(document.querySelector(selector));
  measure();
}
return { Strip, Follower, measureCovers };
})();

modules["app.js"] = (() => {
// SPDX-License-Identifier: Apache-2.0

/**
 * The laboratory's page. Read model.js (the state), source.js (its sources), then
 * cards-copy.js and cards-work.js in the order in which a change passes the pieces.
 *
 * A source calls the handlers below; they change the model or ui and request a drawing. draw is
 * the only place that renders, and requestAnimationFrame calls it at most once per screen frame.
 */
const { html, render, cx } = modules["html.js"];
const { readAddress, writeAddress } = modules["address.js"];
const { HandlersCard, WorkersCard, WorkqueueCard, ElectionCard } = modules["cards-work.js"];
const { QueueCard, ReflectorCard, ServerCard, StoreCard } = modules["cards-copy.js"];
const { Caption, captionOf } = modules["caption.js"];
const { Dialogs } = modules["dialogs.js"];
const { EditionSource, complete } = modules["edition.js"];
const { Flow, between, beside } = modules["flow.js"];
const { DELAYS, Header, StateLine } = modules["header.js"];
const { Journey } = modules["journey.js"];
const { listen } = modules["keyboard.js"];
const { alone, openAt, openFirst } = modules["lessons.js"];
const { Model } = modules["model.js"];
const { Panel } = modules["panel.js"];
const { Plots } = modules["plots.js"];
const { Presenter } = modules["present.js"];
const { Loading, WorkerSource } = modules["program.js"];
const { cardOf } = modules["rails.js"];
const { History, LiveSource, RecordedSource, embeddedRecording, parseRecording } = modules["source.js"];
const { Follower, Strip, measureCovers } = modules["strip.js"];
const { initialLanguage, named, remember, remembered, setLanguage, t } = modules["text.js"];

/** CLOCK_MS is the time after which due times and elapsed times are drawn without a frame. */
const CLOCK_MS = 250;

/** STEP_MS is the least time between two stages that are drawn: an eye sees no difference. */
const STEP_MS = 50;

/** LIT_MS is how long a card stays lit after its last change. */
const LIT_MS = 400;

/** ANNOUNCE_MS is the least time between two announcements to a screen reader. */
const ANNOUNCE_MS = 2500;

const address = readAddress();
const dark = matchMedia("(prefers-color-scheme: dark)");

/** lab is what every component gets: the model, the reader's choices, and what can be done. */
const lab = {
  model: new Model(),
  lessons: [],
  lit: new Map(), // by card: when it was lit
  nextFocus: null,
  caption: null, // the hop that is explained
  past: null, // the source, while the reader looks back
  files: "", // the address of the repository's files, or "" if the page cannot link to them
  follower: new Follower(),
  ui: {
    connection: "connecting", follow: "", journeysBack: 0, delayMs: 0, piece: null,
    tab: matchMedia("(min-width: 1181px)").matches ? "lessons" : null,
    teach: address.teach, lesson: null, dialog: null, search: "", found: [], problem: "", announcement: "",
    program: null, // that this browser loads: the part that is loaded, or why it does not run
    language: initialLanguage(address.language), theme: remembered("theme") || (dark.matches ? "dark" : "light"),
  },
  get frame() {
    return this.model.frame;
  },

  set(changes) {
    Object.assign(this.ui, changes);
    requestDraw();
  },

  /** focus moves the focus after the next drawing: what has it now is removed or disabled by then. */
  focus(selector) {
    this.nextFocus = selector;
    requestDraw();
  },

  /** lookBack moves by frames in the last minute of a live run. After its end is the present. */
  lookBack(by) {
    const start = this.past ?? history.source({ ...on, frame: show }, this.model.hello);
    if (!start.frames.length) return;
    if (start.index + by >= start.frames.length - 1) return this.toPresent();
    this.past = start;
    start.step(by);
  },

  /** toPresent shows the running program again. */
  toPresent() {
    if (!this.past) return;
    this.past.pause();
    this.past = null;
    on.restart();
    for (const frame of history.frames) show(frame, { at: Date.parse(frame.t) - history.skew, silent: true });
  },

  /** move moves what is recorded by frames. */
  move(by) {
    if (this.source.live) this.lookBack(by);
    else this.source.step(by);
  },

  /** stopBefore is the index of the last frame with a stop of this step, or -1. */
  stopBefore(id, step) {
    const passed = this.recorded ? this.recorded.frames.slice(0, this.recorded.index + 1) : history.frames;
    return passed.findLastIndex(({ lesson }) => lesson?.stop && lesson.id === id && lesson.step === step);
  },

  /** lookAt shows the frame with this index again. */
  lookAt(index) {
    if (this.source.live) this.past ??= history.source({ ...on, frame: show }, this.model.hello);
    this.recorded.show(index);
  },

  /** recorded is the source of frames that the reader can move, or null in the present. */
  get recorded() {
    return this.past ?? (this.source.live ? null : this.source);
  },

  async send(command) {
    if (command.do === "step") this.follower.resume();
    const error = await this.source.send(command);
    this.set({ problem: error });
    clearTimeout(this.problemTimer);
    if (error) this.problemTimer = setTimeout(() => this.set({ problem: "" }), 8000);
  },

  /** follow shows one key only. The program is asked to keep its events when it samples. */
  follow(key) {
    if (key === this.ui.follow) return;
    this.set({ follow: key, journeysBack: 0 });
    presenter.follow = key;
    settle();
    this.askToFollow();
  },

  askToFollow() {
    const { follow, connection } = this.ui;
    if (this.source.live && connection === "connected") this.source.send({ do: "follow", key: follow });
  },

  /** setDelay chooses slow motion; 0 is full speed. A paused program stays paused. */
  setDelay(delayMs) {
    this.set({ delayMs });
    if (this.frame?.mode === "pause") return;
    this.send({ do: "mode", mode: delayMs > 0 ? "slow" : "run", delayMs });
  },

  changeSpeed(by) {
    const position = DELAYS.findLastIndex((delay) => delay <= this.ui.delayMs) + by;
    this.setDelay(DELAYS[Math.min(Math.max(position, 0), DELAYS.length - 1)]);
  },

  toggleTheme() {
    this.showTheme(this.ui.theme === "dark" ? "light" : "dark");
    remember("theme", this.ui.theme);
  },

  showTheme(theme) {
    document.documentElement.dataset.theme = theme;
    this.set({ theme });
  },

  toggleLanguage() {
    this.set({ language: this.ui.language === "en" ? "zh" : "en" });
    setLanguage(this.ui.language);
    for (const flow of flows) flow.measure();
  },
};

/** The handlers of a source. */
const on = {
  connection(connection) {
    lab.set({ connection });
  },

  hello(hello) {
    if (hello.started !== lab.model.hello?.started) history.frames = [];
    lab.past?.pause();
    lab.past = null;
    presenter.reset();
    clearTokens();
    lab.model.greet(hello);
    if (hello.replay && lab.source.live) replay();
    else if (lab.ui.follow) lab.askToFollow(); // another program, or another stream of this one
    requestDraw();
  },

  /** restart forgets all frames: a recording was moved. */
  restart() {
    lab.model.reset();
    presenter.reset();
    clearTokens();
  },

  lessons(lessons) {
    lab.lessons = lessons;
    follow(readAddress());
    if (!lab.ui.lesson && !address.desk && lab.model.hello?.writable) openFirst(lab);
    requestDraw();
  },

  frame(frame, how) {
    if (lab.source.live) history.add(frame);
    if (!lab.past) show(frame, how);
  },

  moved() {
    requestDraw();
  },

  /** busy reports whether something is on its way between the cards. */
  busy: () => presenter.due.length > 0,
};

/** follow goes where an address leads. */
function follow({ lesson, step, delayMs }) {
  if (delayMs !== undefined) lab.setDelay(delayMs);
  if (lesson && (lesson !== lab.ui.lesson?.id || step !== lab.ui.lesson.step)) openAt(lab, lesson, step);
}

/** show shows a frame; silent is true while a recording is moved over it. */
function show(frame, { at = Date.now(), silent = false } = {}) {
  const before = lab.model.newest;
  const fresh = lab.model.receive(frame, at);
  if (silent) presenter.jump(fresh);
  else presenter.take(fresh);
  if (before?.mode !== frame.mode || before?.delayMs !== frame.delayMs) {
    if (frame.mode === "slow") lab.ui.delayMs = frame.delayMs;
    if (frame.mode === "run") lab.ui.delayMs = 0;
  }
  announce(frame, before);
  requestDraw();
}

/** replay fetches the recording that a program shows instead of a live run. */
async function replay() {
  lab.source.stop();
  const answer = await fetch("lab/recording");
  lab.source = new RecordedSource(on, parseRecording(await answer.text()));
  lab.source.start();
}

/** load loads the program into this browser. Once it runs, it replaces the recording. */
function load() {
  const recording = lab.source;
  const program = new WorkerSource({
    ...on,
    loading: (loaded) => lab.set({ program: { loaded } }),
    failed(error) {
      if (lab.source === program) on.connection("disconnected");
      lab.set({ program: { failed: error } });
    },
    hello(hello) {
      recording.pause();
      on.restart();
      lab.source = program;
      lab.set({ program: null });
      on.hello(hello);
    },
  });
  lab.set({ program: { loaded: 0 } });
  program.start();
}

let announcedAt = -Infinity;

/** announce reports a change of the reflector's phase to screen readers, not too often. */
function announce(frame, before) {
  const phase = frame.reflector?.phase;
  if (!before || phase === before.reflector?.phase) return;
  if (performance.now() - announcedAt < ANNOUNCE_MS) return;
  announcedAt = performance.now();
  lab.ui.announcement = t("reflector.picture", { phase: named("phase", phase) });
}

/** presenter decides when each card changes; flows draw what moves between them, and along the strip. */
const still = matchMedia("(prefers-reduced-motion: reduce)");
const history = new History();
const presenter = new Presenter({
  model: lab.model,
  still: () => still.matches || document.hidden,
  depart(rail, hops, travel) {
    lab.caption = captionOf(hops, lab.ui.follow) ?? lab.caption;
    for (const flow of flows) flow.launch(rail, hops, travel);
  },
  arrive(hops) {
    lab.caption = captionOf(hops, lab.ui.follow) ?? lab.caption;
    lab.model.arrived(hops);
    for (const hop of hops) lab.lit.set(cardOf(hop), performance.now());
  },
});

/** settle shows at once what is on its way. */
function settle() {
  presenter.flush();
  clearTokens();
}

const clearTokens = () => flows.forEach((flow) => flow.clear());

let flows = [];
let requested = false;
let drawnAt = 0;
let wakeUp = 0; // the timer of the presenter's next change

function requestDraw() {
  if (requested) return;
  requested = true;
  requestAnimationFrame(draw);
}

function draw() {
  requested = false;
  drawnAt = performance.now();
  clearTimeout(wakeUp);
  const wait = presenter.advance();
  if (wait != null) wakeUp = setTimeout(requestDraw, Math.max(wait, STEP_MS));
  const { model, ui } = lab;
  const recorded = lab.recorded;
  lab.now = recorded ? (recorded.times?.[0] ?? 0) + recorded.at : model.now(Date.now());
  if (["disconnected", "refused"].includes(ui.connection) || !model.frame) lab.now = model.frameAt ?? 0;
  lab.age = lab.frame?.mode === "pause" ? 0 : Math.max(0, lab.now - (model.frameAt ?? 0));
  for (const [card, at] of lab.lit) if (drawnAt - at > LIT_MS) lab.lit.delete(card);
  if (lab.lessons.length) writeAddress(ui.lesson);
  render(html`<${Page} lab=${lab} />`, document.getElementById("page"));
  if (lab.nextFocus) document.querySelector(lab.nextFocus)?.focus({ preventScroll: true });
  lab.nextFocus = null;
  if (!flows.length && model.frame) makeFlows();
  for (const flow of flows) flow.hold(lab.frame?.mode === "pause" ? (lab.frame.held ?? []) : []);
  lab.follower.follow(lab);
}

/** makeFlows makes what needs the elements of the page. */
function makeFlows() {
  const strip = document.querySelector(".strip");
  flows = [new Flow(document.getElementById("flow"), document.getElementById("overlay"), between),
    new Flow(strip, strip.querySelector(".overlay"), beside)];
  measureCovers();
}

/** Page has a key where an element must stay: the desk has the focus and folds, the overlay the flow. */
function Page() {
  const { frame, ui } = lab;
  return html`
    <a class="skip" href="#flow">${t("skip")}</a>
    <${Header} lab=${lab} />
    <${StateLine} lab=${lab} />
    ${ui.program && html`<${Loading} lab=${lab} />`}
    <div class="hidden" role="status" aria-live="polite">${ui.announcement}</div>
    ${ui.problem && html`<div class="problem" role="alert">${ui.problem}</div>`}
    <div key="desk" class=${cx("desk", ui.follow && "has-follow", alone(lab) && "alone")}>
      <main>
        <div class="lead"><${Strip} lab=${lab} /><${Caption} lab=${lab} /></div>
        <div id="flow" class="flow" tabindex="-1" data-seq=${frame?.seq}>${frame && html`
          <${ServerCard} lab=${lab} /><${ReflectorCard} lab=${lab} />
          <${QueueCard} lab=${lab} /><${StoreCard} lab=${lab} />
          <${HandlersCard} lab=${lab} /><${WorkqueueCard} lab=${lab} />
          <div class="stack"><${WorkersCard} lab=${lab} /><${ElectionCard} lab=${lab} /></div>`}
          <div key="overlay" id="overlay" class="overlay" aria-hidden="true"></div></div>
        ${!frame && html`<p class="waiting">${t("waiting")}</p>`}
        ${frame && html`<div class="lower"><${Journey} lab=${lab} /><${Plots} lab=${lab} /></div>`}
      </main>
      <${Panel} lab=${lab} />
    </div>
    <${Dialogs} lab=${lab} />`;
}

/** begin starts the page with its source: a program, or what the page carries. */
async function begin() {
  const recording = await embeddedRecording();
  if (recording?.program) recording.frames = complete(recording.frames);
  if (!recording) lab.files = "read/";
  else if (recording.files) lab.files = recording.files;
  const Source = !recording ? LiveSource : recording.lesson ? EditionSource : RecordedSource;
  lab.source = new Source(on, recording);
  listen(lab);
  lab.showTheme(lab.ui.theme);
  dark.addEventListener("change", () => {
    if (!remembered("theme")) lab.showTheme(dark.matches ? "dark" : "light");
  });
  // The event comes later: the page may have written its own address again.
  addEventListener("hashchange", ({ newURL }) => follow(readAddress(new URL(newURL))));
  lab.source.start();
  if (recording?.program) load();
  if (lab.source.lesson && !lab.ui.lesson) openAt(lab, lab.source.lesson.id, address.step);
  setInterval(() => {
    if (lab.frame && !document.hidden && performance.now() - drawnAt > CLOCK_MS) requestDraw();
  }, CLOCK_MS);
  requestDraw();
}

setLanguage(lab.ui.language);
document.documentElement.dataset.theme = lab.ui.theme;
document.documentElement.toggleAttribute("data-teach", address.teach);
begin();
return {  };
})();
